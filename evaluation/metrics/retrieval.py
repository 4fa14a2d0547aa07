"""Retrieval metrics: the top k passages against the relevant ones (generation evaluation, and nDCG and average
precision as in trec_eval), the retriever's own scores (regulation evaluation), and the response latency (graphrag
evaluation)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from math import log2
from typing import Any

from evaluation.core.metric_specs import Bilingual, Direction, RuleFunction, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import UNIT, YES_NO, ReviewForm, Scale, ScaleKind


@dataclass(frozen=True, slots=True)
class Ranking:
    """Top ``k`` positions of a retrieval. ``gains``: whether each filled position brings a relevant passage for the
    first time; a repeated id keeps its position without gain. ``relevant`` is the number of distinct relevant
    passages of the question, at least 1."""

    gains: tuple[bool, ...]
    relevant: int
    k: int
    relevant_ids: tuple[str, ...]

    @property
    def detail(self) -> dict[str, Any]:
        return {"k": self.k, "relevant": self.relevant, "retrieved": len(self.gains), "found": list(self.relevant_ids)}


def ranking(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Ranking | Result:
    """Ranking, or the not-applicable result: ``no_relevant_chunks`` (the question names none), ``does_not_retrieve``,
    ``no_retrieved_ids`` (passages without ids). The ranking is empty if nothing was retrieved."""
    relevant = frozenset(question.ground_truth_chunk_ids)
    if not relevant:
        return Result.not_applicable("no_relevant_chunks")
    ids = answer.retrieved_ids
    if ids is None:
        if answer.contexts is None:
            return Result.not_applicable("does_not_retrieve")
        ids = tuple(context.chunk_id for context in answer.contexts)
        if ids and not any(ids):
            return Result.not_applicable("no_retrieved_ids")
    relevant_found: dict[str, None] = {}
    gains = []
    for chunk_id in ids[: settings.k]:
        gains.append(chunk_id in relevant and chunk_id not in relevant_found)
        if gains[-1]:
            relevant_found[chunk_id] = None
    return Ranking(tuple(gains), len(relevant), settings.k, tuple(relevant_found))


_rank_metric = partial(
    rule_metric,
    source="generation",
    inputs=("ground_truth_chunk_ids", "retrieved_ids"),
    review_form=ReviewForm.NONE,
)


def _ranking_metric(figure: Callable[[Ranking], float]) -> RuleFunction:
    """Metric of a ranking figure; not applicable without relevant passages or retrieval."""

    @wraps(figure)
    def metric(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
        ranked = ranking(question, answer, settings)
        return ranked if isinstance(ranked, Result) else Result.scored(figure(ranked), detail=ranked.detail)

    return metric


@_rank_metric(
    name="precision_at_k",
    title=Bilingual("Precision@k", "정밀도@k"),
    formula=Bilingual(
        "distinct relevant passages in the top k / k",
        "상위 k개에 있는 서로 다른 관련 청크 수 / k",
    ),
)
@_ranking_metric
def precision_at_k(ranked: Ranking) -> float:
    """Share from 0 to 1; empty positions count."""
    return sum(ranked.gains) / ranked.k


@_rank_metric(
    name="recall_at_k",
    title=Bilingual("Recall@k", "재현율@k"),
    formula=Bilingual(
        "distinct relevant passages in the top k / all relevant passages",
        "상위 k개에 있는 서로 다른 관련 청크 수 / 전체 관련 청크 수",
    ),
)
@_ranking_metric
def recall_at_k(ranked: Ranking) -> float:
    """Share from 0 to 1."""
    return sum(ranked.gains) / ranked.relevant


@_rank_metric(
    name="hit_at_k",
    scale=YES_NO,
    title=Bilingual("Hit@k", "적중@k"),
    formula=Bilingual(
        "1 if any relevant passage is in the top k, else 0; its mean is the hit rate",
        "상위 k개에 관련 청크가 하나라도 있으면 1, 아니면 0; 평균이 적중률",
    ),
)
@_ranking_metric
def hit_at_k(ranked: Ranking) -> float:
    """1 or 0."""
    return 1.0 if any(ranked.gains) else 0.0


@_rank_metric(
    name="reciprocal_rank",
    title=Bilingual("Reciprocal rank", "역순위"),
    formula=Bilingual(
        "1 / rank of the first relevant passage in the top k, else 0; its mean is MRR",
        "상위 k개 중 첫 관련 청크 순위의 역수, 없으면 0; 평균이 MRR",
    ),
)
@_ranking_metric
def reciprocal_rank(ranked: Ranking) -> float:
    """1 / rank, or 0."""
    first = next((rank for rank, gain in enumerate(ranked.gains, 1) if gain), None)
    return 1 / first if first else 0.0


@_rank_metric(
    name="average_precision_at_k",
    title=Bilingual("Average precision@k", "평균 정밀도@k"),
    formula=Bilingual(
        "sum of precision@rank over relevant places in the top k / all relevant passages",
        "상위 k개의 관련 위치별 정밀도@순위 합 / 전체 관련 청크 수",
    ),
    source="TREC",
)
@_ranking_metric
def average_precision_at_k(ranked: Ranking) -> float:
    """Share from 0 to 1."""
    precisions = (sum(ranked.gains[:rank]) / rank for rank, gain in enumerate(ranked.gains, 1) if gain)
    return sum(precisions) / ranked.relevant


@_rank_metric(
    name="ndcg_at_k",
    title=Bilingual("nDCG@k", "nDCG@k"),
    formula=Bilingual(
        "sum of 1 / log2(rank + 1) over relevant places / the same with all relevant passages first",
        "관련 위치의 1 / log2(순위 + 1) 합 / 관련 청크가 모두 앞에 올 때의 합",
    ),
    source="TREC",
)
@_ranking_metric
def ndcg_at_k(ranked: Ranking) -> float:
    """Share from 0 to 1."""
    gain_sum = sum(1 / log2(rank + 1) for rank, gain in enumerate(ranked.gains, 1) if gain)
    ideal = sum(1 / log2(rank + 1) for rank in range(1, min(ranked.relevant, ranked.k) + 1))
    return gain_sum / ideal


_DECAY = 0.1


@rule_metric(
    name="source_relevance",
    title=Bilingual("Source relevance", "출처 관련도"),
    formula=Bilingual(
        "sum of score x weight / sum of weights, weight = 1 / (1 + 0.1 x position from 0)",
        "점수 x 가중치의 합 / 가중치의 합, 가중치 = 1 / (1 + 0.1 x 0부터 센 위치)",
    ),
    source="regulation",
    inputs=("contexts",),
    review_form=ReviewForm.NONE,
)
def source_relevance(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """Weighted mean score, 0 to 1; 0 if nothing was retrieved. Not applicable if the system does not retrieve, a
    passage has no score, or a score is outside 0..1 (BM25, distances)."""
    if answer.contexts is None:
        return Result.not_applicable("does_not_retrieve")
    if not answer.contexts:
        return Result.scored(0.0)
    scores = [context.score for context in answer.contexts]
    present = [score for score in scores if score is not None]
    if len(present) < len(scores):
        return Result.not_applicable("no_retrieval_scores")
    if not all(map(UNIT.contains, present)):
        return Result.not_applicable("scores_off_unit")
    weights = [1 / (1 + _DECAY * position) for position in range(len(present))]
    return Result.scored(sum(s * w for s, w in zip(present, weights, strict=True)) / sum(weights))


_SECONDS = Scale(ScaleKind.SECONDS, 0, 86_400)


@rule_metric(
    name="latency",
    scale=_SECONDS,
    title=Bilingual("Latency", "응답 지연시간"),
    formula=Bilingual(
        "seconds from the request to the complete answer; mean, median and 95th percentile",
        "요청부터 전체 답변까지의 시간(초); 평균, 중앙값, 95번째 백분위수",
    ),
    source="graphrag",
    direction=Direction.LOWER,
    inputs=("latency",),
    aggregation="latency",
    review_form=ReviewForm.NONE,
)
def latency(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """Seconds; not applicable (``no_latency``) if not measured, failed (``scale``) if not between 0 and a day."""
    seconds = answer.latency_seconds
    if seconds is None:
        return Result.not_applicable("no_latency")
    return Result.scored(seconds) if _SECONDS.contains(seconds) else Result.failed(f"scale: {seconds}")
