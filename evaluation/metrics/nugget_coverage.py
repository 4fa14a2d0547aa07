"""Nugget coverage (source 004, phase 2): the share of the facts an answer should hold that occur in it."""

from __future__ import annotations

from dataclasses import replace

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, Nugget, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.keyword_findings import DeferredMapping, DeferredSequence, in_answer, keyword_set
from evaluation.metrics.normalise import folded


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
    nuggets = [nugget for nugget in question.nuggets or settings.nuggets if any(map(folded, _wordings(nugget)))]
    if not nuggets:
        return Result.not_applicable("no_nuggets")
    wanted = keyword_set(tuple(map(_wordings, nuggets)), settings.matching)
    found = in_answer(wanted, answer.text)
    vital = [occurs for nugget, occurs in zip(nuggets, found.occurring, strict=True) if nugget.vital]
    counts = {"vital": len(vital), "vital_found": sum(vital), "nuggets": "question" if question.nuggets else "profile"}
    return Result.scored(
        found.share,
        detail=DeferredMapping(lambda: {**found.detail, **counts}),
        findings=DeferredSequence(lambda: tuple(replace(finding, kind="nugget") for finding in found.findings)),
    )


def _wordings(nugget: Nugget) -> tuple[str, ...]:
    return (nugget.name, *nugget.alternatives)
