"""Pool of passages that several systems retrieved for the same questions, and retrieval metrics of their relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np
import numpy.typing as npt

from review.statistics.agreement.statistic import Array, Indices

Mask = npt.NDArray[np.bool_]


class RetrievalMetric(StrEnum):
    """Metric that is a sum over passages, or a ratio of such sums within a question."""

    PRECISION = "precision_at_k"
    RECALL = "recall_at_k"
    NDCG = "ndcg_at_k"


@dataclass(frozen=True, slots=True)
class Pool:
    """Passages that a system retrieved for a question, or that a label names; aligned by passage.

    ``question`` numbers the questions from 0. ``ranks`` has a row for each system: the passage's first rank from 1, or
    0 if it was not retrieved. ``known`` is the relevance from 0 to 1 of a label from before the draw, else NaN.
    ``judge`` is an LLM judge's score from 0 to 1, or NaN."""

    question: Indices
    ranks: Indices
    known: Array
    judge: Array
    k: int

    def __post_init__(self) -> None:
        if self.k < 1 or self.ranks.ndim != 2 or self.ranks.shape[1] != len(self.question):
            raise ValueError("ranks has a row for each system and a column for each passage, k is at least 1")

    @property
    def systems(self) -> int:
        return len(self.ranks)

    @property
    def questions(self) -> int:
        return int(self.question.max()) + 1 if len(self.question) else 0

    @property
    def unlabelled(self) -> Indices:
        """Positions of the passages without a label."""
        return np.flatnonzero(np.isnan(self.known))

    def within_k(self) -> Array:
        """1 for passages among a system's first k, else 0; a row for each system."""
        return np.asarray((self.ranks > 0) & (self.ranks <= self.k), dtype=np.float64)

    def discounts(self) -> Array:
        """``1 / log2(rank + 1)`` within the first k, else 0; a row for each system."""
        return np.asarray(self.within_k() / np.log2(np.maximum(self.ranks, 1) + 1.0))

    def sums(self, values: Array) -> Array:
        """Sum passage values (last axis) by question."""
        flat = values.reshape(-1, len(self.question))
        sums = [np.bincount(self.question, row, minlength=self.questions) for row in flat]
        return np.array(sums, dtype=np.float64).reshape(*values.shape[:-1], self.questions)


def ideal_gain(relevant: Array, k: int) -> tuple[Array, Array]:
    """Discounted gain of a ranking with all relevant passages first, and its slope in their number.

    Linear between whole numbers, constant from k on."""
    steps = 1.0 / np.log2(np.arange(2, k + 2))
    gains = np.concatenate([[0.0], np.cumsum(steps)])
    clipped = np.clip(relevant, 0.0, k)
    whole_part = np.minimum(np.floor(clipped).astype(int), k - 1)
    return gains[whole_part] + (clipped - whole_part) * steps[whole_part], np.where(
        relevant < k, steps[whole_part], 0.0
    )


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """Metrics of systems, and differences of two systems in the order of :func:`system_pairs`.

    ``value`` is by metric and system. ``influence`` is the derivative by passage relevance, by metric, system and
    passage. ``deviation`` is each question's share of the mean's deviation, by metric, system and question."""

    value: Array
    influence: Array
    deviation: Array


def system_pairs(systems: int) -> Sequence[tuple[int, int]]:
    """Pairs of systems; differences are the first minus the second."""
    return list(combinations(range(systems), 2))


@dataclass(frozen=True, slots=True)
class RatioFigure:
    """Metric that is, in each question, a sum over passages divided by the sum of a perfect ranking.

    ``gain`` is by system and passage, ``perfect`` by question, and ``slope`` its slope in the number of relevant
    passages."""

    gain: Array
    perfect: Array
    slope: Array


def ratio_figures(pool: Pool, total: Array) -> dict[RetrievalMetric, RatioFigure]:
    """Recall and nDCG for questions with ``total`` relevant passages."""
    ideal, slope = ideal_gain(total, pool.k)
    return {
        RetrievalMetric.RECALL: RatioFigure(pool.within_k(), total, np.ones_like(total)),
        RetrievalMetric.NDCG: RatioFigure(pool.discounts(), ideal, slope),
    }


def with_differences(pool: Pool, by_system: Array) -> Array:
    """Rows of systems, followed by the differences of two (:func:`system_pairs`)."""
    first, second = (np.array([pair[at] for pair in system_pairs(pool.systems)], dtype=int) for at in (0, 1))
    return np.concatenate([by_system, by_system[first] - by_system[second]])


def pool_figures(pool: Pool, relevance: Array, least: Array, counted: Mask) -> PoolFigures:
    """Precision, recall and nDCG at k as means over questions.

    Relevances may be terms of an estimated sum, so a passage's value may lie outside 0 to 1. Precision covers all
    questions, recall and nDCG those ``counted`` (flags by question). Per question recall is ``sum_topk y / R`` and nDCG
    ``sum_topk y / log2(rank + 1) / ideal(R)``, with ``R = sum y`` over the pool and at least ``least`` (the known
    relevance by question). Influences are derivatives (Taylor linearisation)."""
    top, question = pool.within_k(), pool.question
    weight = counted[question] / max(1, int(counted.sum()))
    means = [_mean(pool.sums(top * relevance) / pool.k, np.ones(pool.questions))]
    influence = [top / (pool.k * pool.questions)]
    for ratio in ratio_figures(pool, np.maximum(pool.sums(relevance), least)).values():
        value = pool.sums(ratio.gain * relevance) / ratio.perfect
        means.append(_mean(value, counted))
        influence.append(weight * (ratio.gain - (value * ratio.slope)[:, question]) / ratio.perfect[question])
    by_metric = ([mean for mean, _ in means], influence, [deviation for _, deviation in means])
    return PoolFigures(*(np.array([with_differences(pool, rows) for rows in by_system]) for by_system in by_metric))


def _mean(values: Array, weights: Array | Mask) -> tuple[Array, Array]:
    """Mean over weighted questions (last axis), and each question's share of its deviation."""
    share = weights / max(1.0, float(weights.sum()))
    mean = (values * share).sum(axis=-1)
    return mean, share * (values - mean[..., None])
