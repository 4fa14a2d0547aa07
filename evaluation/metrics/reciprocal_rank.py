"""Reciprocal rank (source 002): how early the first relevant passage comes; its mean is MRR."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.retrieval import ranking


@rule_metric(
    MetricSpec(
        name="reciprocal_rank",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Reciprocal rank", "역순위"),
        formula=Bilingual(
            "1 / rank of the first relevant passage in the top k, else 0; its mean is MRR",
            "상위 k개 중 첫 관련 청크 순위의 역수, 없으면 0; 평균이 MRR",
        ),
        source="002",
        inputs=("ground_truth_chunk_ids", "retrieved_ids"),
        review_form=ReviewForm.NONE,
    )
)
def reciprocal_rank(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 / rank, or 0; not applicable without relevant passages or retrieval."""
    ranked = ranking(question, answer, settings)
    if isinstance(ranked, Result):
        return ranked
    first = next((rank for rank, gain in enumerate(ranked.gains, 1) if gain), None)
    return Result.scored(1 / first if first else 0.0, detail=ranked.detail)
