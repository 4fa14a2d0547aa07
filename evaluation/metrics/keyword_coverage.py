"""Metrics of expected keywords (source 000, 2.1 A and B), required points (003) and nuggets (004, phase 2): whether,
and what share of them occur in the answer.
"""

from __future__ import annotations

from dataclasses import replace

from evaluation.core.registry import Bilingual, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, Nugget, QuestionSpec, Result
from evaluation.core.scales import UNIT, YES_NO
from evaluation.metrics.keyword_findings import (
    DeferredMapping,
    DeferredSequence,
    Keywords,
    KeywordsInAnswer,
    in_answer,
    keyword_set,
)
from evaluation.metrics.normalise import folded


def _found(keywords: Keywords, answer: AnswerSpec, settings: RuleSettings) -> KeywordsInAnswer | None:
    """What the keywords find in the answer; ``None`` where none says anything."""
    wanted = keyword_set(keywords, settings.matching)
    return in_answer(wanted, answer.text) if wanted.keywords else None


@rule_metric(
    name="keyword_coverage",
    scale=UNIT,
    title=Bilingual("Keyword coverage", "키워드 커버리지"),
    formula=Bilingual(
        "expected keywords that occur in the answer / expected keywords",
        "답변에 나온 기대 키워드 수 / 기대 키워드 수",
    ),
    source="000",
    inputs=("keywords",),
)
def keyword_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1; not applicable (``no_keywords``) to a question without expected keywords."""
    found = _found(question.keywords, answer, settings)
    return found.scored(found.share) if found else Result.not_applicable("no_keywords")


@rule_metric(
    name="keyword_hit",
    scale=YES_NO,
    title=Bilingual("Keyword hit", "키워드 적중"),
    formula=Bilingual(
        "1 if at least one expected keyword occurs in the answer, else 0",
        "기대 키워드가 답변에 하나 이상 나오면 1, 아니면 0",
    ),
    source="000",
    inputs=("keywords",),
    review_form=ReviewForm.YES_NO,
)
def keyword_hit(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0; not applicable (``no_keywords``) to a question without expected keywords."""
    found = _found(question.keywords, answer, settings)
    return found.scored(1.0 if found.found else 0.0) if found else Result.not_applicable("no_keywords")


@rule_metric(
    name="required_info_coverage",
    scale=UNIT,
    title=Bilingual("Required information", "필수 정보 포함률"),
    formula=Bilingual(
        "required points that occur in the answer / required points",
        "답변에 나온 필수 항목 수 / 필수 항목 수",
    ),
    source="003",
    inputs=("required_info",),
)
def required_info_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1, points matched as keywords are; not applicable (``no_required_info``) without points."""
    found = _found(tuple((point,) for point in dict.fromkeys(question.required_info)), answer, settings)
    return found.scored(found.share) if found else Result.not_applicable("no_required_info")


@rule_metric(
    name="nugget_coverage",
    scale=UNIT,
    title=Bilingual("Nugget coverage", "너깃 포함률"),
    formula=Bilingual(
        "nuggets of which any wording occurs in the answer / nuggets",
        "표현 중 하나라도 답변에 나온 너깃 수 / 너깃 수",
    ),
    source="004",
    inputs=("nuggets",),
    review_form=ReviewForm.NUGGETS,
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
