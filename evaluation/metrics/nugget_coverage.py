"""Nugget coverage (source 004, phase 2): the share of the facts an answer should hold that occur in it."""

from __future__ import annotations

from dataclasses import replace

from evaluation.metrics.keyword_findings import keyword_detail, keyword_finding, keyword_hits, occurs
from evaluation.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.samples import AnswerSpec, QuestionSpec, Result
from evaluation.scales import Scale, ScaleKind


@rule_metric(
    MetricSpec(
        name="nugget_coverage",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Nugget coverage", "너깃 포함률"),
        formula=Bilingual(
            "nuggets of which any wording occurs in the answer / nuggets",
            "표현 중 하나라도 답변에 나온 너깃 수 / 너깃 수",
        ),
        source="004",
        inputs=("nuggets",),
        review_form=ReviewForm.NUGGETS,
    )
)
def nugget_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1 over all nuggets, the share of the vital ones beside it; not applicable (``no_nuggets``)
    where neither the question nor the profile has any. The missing ones are findings."""
    nuggets = question.nuggets or settings.nuggets
    if not nuggets:
        return Result.not_applicable("no_nuggets")
    wordings = tuple((nugget.name, *nugget.alternatives) for nugget in nuggets)
    hits = keyword_hits(wordings, answer, settings)
    vital = [occurs(hit) for nugget, hit in zip(nuggets, hits, strict=True) if nugget.vital]
    detail = keyword_detail(hits, settings) | {"vital": len(vital), "vital_found": sum(vital)}
    detail["nuggets"] = "question" if question.nuggets else "profile"
    return Result.scored(
        sum(map(occurs, hits)) / len(hits),
        detail=detail,
        findings=tuple(replace(keyword_finding(w, hit), kind="nugget") for w, hit in zip(wordings, hits, strict=True)),
    )
