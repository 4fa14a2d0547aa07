"""Precision at k (source 002): the share of the top k places that hold distinct relevant passages."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.retrieval import ranking


@rule_metric(
    MetricSpec(
        name="precision_at_k",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Precision@k", "정밀도@k"),
        formula=Bilingual(
            "distinct relevant passages in the top k / k",
            "상위 k개에 있는 서로 다른 관련 청크 수 / k",
        ),
        source="002",
        inputs=("ground_truth_chunk_ids", "retrieved_ids"),
        review_form=ReviewForm.NONE,
    )
)
def precision_at_k(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1, empty places counted; not applicable without relevant passages or retrieval."""
    ranked = ranking(question, answer, settings)
    if isinstance(ranked, Result):
        return ranked
    return Result.scored(sum(ranked.gains) / ranked.k, detail=ranked.detail)
