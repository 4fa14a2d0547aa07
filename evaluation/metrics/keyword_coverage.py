"""Keyword coverage (source 000, 2.1 B): the share of the expected keywords that occur in the answer."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec, RuleSettings, rule_metric
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
