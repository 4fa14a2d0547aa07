"""Average precision at k, binary, as trec_eval's map_cut computes it: divided by all relevant passages."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.retrieval import ranking


@rule_metric(
    MetricSpec(
        name="average_precision_at_k",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Average precision@k", "평균 정밀도@k"),
        formula=Bilingual(
            "sum of precision@rank over relevant places in the top k / all relevant passages",
            "상위 k개의 관련 위치별 정밀도@순위 합 / 전체 관련 청크 수",
        ),
        source="TREC",
        inputs=("ground_truth_chunk_ids", "retrieved_ids"),
        review_form=ReviewForm.NONE,
    )
)
def average_precision_at_k(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1; not applicable without relevant passages or retrieval."""
    ranked = ranking(question, answer, settings)
    if isinstance(ranked, Result):
        return ranked
    precisions = (sum(ranked.gains[:rank]) / rank for rank, gain in enumerate(ranked.gains, 1) if gain)
    return Result.scored(sum(precisions) / ranked.relevant, detail=ranked.detail)
