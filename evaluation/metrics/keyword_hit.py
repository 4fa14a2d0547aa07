"""Keyword hit (source 000, 2.1 A): whether at least one expected keyword occurs in the answer."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.keyword_findings import in_answer, keyword_set


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
