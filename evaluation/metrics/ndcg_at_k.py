"""Normalised discounted cumulative gain at k, binary, as trec_eval's ndcg_cut computes it."""

from __future__ import annotations

from math import log2

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.retrieval import ranking


@rule_metric(
    MetricSpec(
        name="ndcg_at_k",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("nDCG@k", "nDCG@k"),
        formula=Bilingual(
            "sum of 1 / log2(rank + 1) over relevant places / the same with all relevant passages first",
            "관련 위치의 1 / log2(순위 + 1) 합 / 관련 청크가 모두 앞에 올 때의 합",
        ),
        source="TREC",
        inputs=("ground_truth_chunk_ids", "retrieved_ids"),
        review_form=ReviewForm.NONE,
    )
)
def ndcg_at_k(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1; not applicable without relevant passages or retrieval."""
    ranked = ranking(question, answer, settings)
    if isinstance(ranked, Result):
        return ranked
    gained = sum(1 / log2(rank + 1) for rank, gain in enumerate(ranked.gains, 1) if gain)
    ideal = sum(1 / log2(rank + 1) for rank in range(1, min(ranked.relevant, ranked.k) + 1))
    return Result.scored(gained / ideal, detail=ranked.detail)
