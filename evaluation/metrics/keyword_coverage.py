"""Metrics of expected keywords and required points.

Keyword coverage (source 000, 2.1 B): the share of the expected keywords that occur in the answer.

Keyword hit (source 000, 2.1 A): whether at least one expected keyword occurs in the answer.

Required information (source 003): the share of the question's required points that occur in the answer.
"""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.keyword_findings import in_answer, keyword_set


@rule_metric(
    MetricSpec(
        name="keyword_coverage",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Keyword coverage", "키워드 커버리지"),
        formula=Bilingual(
            "expected keywords that occur in the answer / expected keywords",
            "답변에 나온 기대 키워드 수 / 기대 키워드 수",
        ),
        source="000",
        inputs=("keywords",),
    )
)
def keyword_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1; not applicable (``no_keywords``) to a question without expected keywords."""
    wanted = keyword_set(question.keywords, settings.matching)
    if not wanted.keywords:
        return Result.not_applicable("no_keywords")
    found = in_answer(wanted, answer.text)
    return found.scored(found.share)


@rule_metric(
    MetricSpec(
        name="keyword_hit",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.YES_NO, 0, 1),
        title=Bilingual("Keyword hit", "키워드 적중"),
        formula=Bilingual(
            "1 if at least one expected keyword occurs in the answer, else 0",
            "기대 키워드가 답변에 하나 이상 나오면 1, 아니면 0",
        ),
        source="000",
        inputs=("keywords",),
        review_form=ReviewForm.YES_NO,
    )
)
def keyword_hit(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0; not applicable (``no_keywords``) to a question without expected keywords."""
    wanted = keyword_set(question.keywords, settings.matching)
    if not wanted.keywords:
        return Result.not_applicable("no_keywords")
    found = in_answer(wanted, answer.text)
    return found.scored(1.0 if found.found else 0.0)


@rule_metric(
    MetricSpec(
        name="required_info_coverage",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Required information", "필수 정보 포함률"),
        formula=Bilingual(
            "required points that occur in the answer / required points",
            "답변에 나온 필수 항목 수 / 필수 항목 수",
        ),
        source="003",
        inputs=("required_info",),
    )
)
def required_info_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1, points matched as keywords are; not applicable (``no_required_info``) without points."""
    wanted = keyword_set(tuple((point,) for point in dict.fromkeys(question.required_info)), settings.matching)
    if not wanted.keywords:
        return Result.not_applicable("no_required_info")
    found = in_answer(wanted, answer.text)
    return found.scored(found.share)
