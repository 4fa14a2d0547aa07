"""Hit at k (source 002): whether any relevant passage is in the top k; its mean is the hit rate."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.retrieval import ranking


@rule_metric(
    MetricSpec(
        name="hit_at_k",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.YES_NO, 0, 1),
        title=Bilingual("Hit@k", "적중@k"),
        formula=Bilingual(
            "1 if any relevant passage is in the top k, else 0; its mean is the hit rate",
            "상위 k개에 관련 청크가 하나라도 있으면 1, 아니면 0; 평균이 적중률",
        ),
        source="002",
        inputs=("ground_truth_chunk_ids", "retrieved_ids"),
        review_form=ReviewForm.NONE,
    )
)
def hit_at_k(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0; not applicable without relevant passages or retrieval."""
    ranked = ranking(question, answer, settings)
    if isinstance(ranked, Result):
        return ranked
    return Result.scored(1.0 if any(ranked.gains) else 0.0, detail=ranked.detail)
