"""Retrieval metrics: the top k retrieved passages against the relevant ones.

What the retrieval metrics share: the top k retrieved passages against the relevant ones of the question.

Precision at k (source 002): the share of the top k places that hold distinct relevant passages.

Recall at k (source 002): the share of the relevant passages that are in the top k.

Hit at k (source 002): whether any relevant passage is in the top k; its mean is the hit rate.

Reciprocal rank (source 002): how early the first relevant passage comes; its mean is MRR.

Average precision at k, binary, as trec_eval's map_cut computes it: divided by all relevant passages.

Normalised discounted cumulative gain at k, binary, as trec_eval's ndcg_cut computes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Any

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind


@dataclass(frozen=True, slots=True)
class Ranking:
    """The top ``k`` places of a retrieval. ``gains`` says for each place that is filled whether it brings a relevant
    passage for the first time: a repeated id keeps its place and is not relevant a second time. ``relevant`` is the
    number of distinct relevant passages of the question, at least 1."""

    gains: tuple[bool, ...]
    relevant: int
    k: int
    found: tuple[str, ...]

    @property
    def detail(self) -> dict[str, Any]:
        """What a reader needs to check the figure."""
        return {"k": self.k, "relevant": self.relevant, "retrieved": len(self.gains), "found": list(self.found)}


def ranking(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Ranking | Result:
    """The ranking, or why there is none: ``no_relevant_chunks`` (the question names none), ``does_not_retrieve``,
    ``no_retrieved_ids`` (passages without ids). A system that retrieved nothing has an empty ranking."""
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
    found: dict[str, None] = {}
    gains = []
    for chunk_id in ids[: settings.k]:
        gains.append(chunk_id in relevant and chunk_id not in found)
        if gains[-1]:
            found[chunk_id] = None
    return Ranking(tuple(gains), len(relevant), settings.k, tuple(found))


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


@rule_metric(
    MetricSpec(
        name="recall_at_k",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Recall@k", "재현율@k"),
        formula=Bilingual(
            "distinct relevant passages in the top k / all relevant passages",
            "상위 k개에 있는 서로 다른 관련 청크 수 / 전체 관련 청크 수",
        ),
        source="002",
        inputs=("ground_truth_chunk_ids", "retrieved_ids"),
        review_form=ReviewForm.NONE,
    )
)
def recall_at_k(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1; not applicable without relevant passages or retrieval."""
    ranked = ranking(question, answer, settings)
    if isinstance(ranked, Result):
        return ranked
    return Result.scored(sum(ranked.gains) / ranked.relevant, detail=ranked.detail)


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
