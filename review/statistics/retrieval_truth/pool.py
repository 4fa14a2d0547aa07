"""What several systems retrieved for the same questions, and retrieval figures as functions of the passages'
relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np
import numpy.typing as npt

from review.statistics.agreement.statistic import Array, Indices

Mask = npt.NDArray[np.bool_]


class Metric(StrEnum):
    """The figures that are sums over passages, or ratios of such sums within a question."""

    PRECISION = "precision_at_k"
    RECALL = "recall_at_k"
    NDCG = "ndcg_at_k"


@dataclass(frozen=True, slots=True)
class Pool:
    """Every passage that a system retrieved for a question, or that a label names; aligned by passage.

    ``question`` numbers the questions from 0. ``ranks`` has a row for each system: the first rank of the passage there,
    from 1, and 0 where it was not retrieved. ``known`` is the relevance from 0 to 1 where a label was there before the
    draw, else NaN; ``judge`` what an LLM judge says of it, from 0 to 1, or NaN.
    """

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
        """How many systems there are."""
        return len(self.ranks)

    @property
    def questions(self) -> int:
        """How many questions there are."""
        return int(self.question.max()) + 1 if len(self.question) else 0

    @property
    def unlabelled(self) -> Indices:
        """The passages without a label."""
        return np.flatnonzero(np.isnan(self.known))

    def within_k(self) -> Array:
        """1 where a system has the passage among its first k, else 0; a row for each system."""
        return np.asarray((self.ranks > 0) & (self.ranks <= self.k), dtype=np.float64)

    def discounts(self) -> Array:
        """``1 / log2(rank + 1)`` within the first k, else 0; a row for each system."""
        return np.asarray(self.within_k() / np.log2(np.maximum(self.ranks, 1) + 1.0))

    def sums(self, values: Array) -> Array:
        """The sum of values of passages (last axis) by question."""
        flat = values.reshape(-1, len(self.question))
        found = [np.bincount(self.question, row, minlength=self.questions) for row in flat]
        return np.array(found, dtype=np.float64).reshape(*values.shape[:-1], self.questions)


def ideal_gain(relevant: Array, k: int) -> tuple[Array, Array]:
    """The discounted gain of a ranking that has all relevant passages first, and its slope in their number; between
    whole numbers a straight line, constant from k on."""
    steps = 1.0 / np.log2(np.arange(2, k + 2))
    gains = np.concatenate([[0.0], np.cumsum(steps)])
    inside = np.clip(relevant, 0.0, k)
    whole = np.minimum(np.floor(inside).astype(int), k - 1)
    return gains[whole] + (inside - whole) * steps[whole], np.where(relevant < k, steps[whole], 0.0)


@dataclass(frozen=True, slots=True)
class Figures:
    """``value`` by metric and system, and ``influence`` by metric, system and passage: how much the figure changes with
    the passage's relevance. ``deviation`` has each question's share of the mean's deviation, by metric, system and
    question. Differences of two systems follow the systems, in the order of :func:`pairs`."""

    value: Array
    influence: Array
    deviation: Array


def pairs(systems: int) -> Sequence[tuple[int, int]]:
    """Two systems each, the first minus the second."""
    return list(combinations(range(systems), 2))


@dataclass(frozen=True, slots=True)
class Ratio:
    """A figure that is, in each question, a sum over passages by the sum of a perfect ranking: ``gain`` by system and
    passage, ``perfect`` by question, and its ``slope`` in the number of relevant passages."""

    gain: Array
    perfect: Array
    slope: Array


def ratios(pool: Pool, total: Array) -> dict[Metric, Ratio]:
    """Recall and nDCG where questions have ``total`` relevant passages."""
    ideal, slope = ideal_gain(total, pool.k)
    return {
        Metric.RECALL: Ratio(pool.within_k(), total, np.ones_like(total)),
        Metric.NDCG: Ratio(pool.discounts(), ideal, slope),
    }


def with_pairs(pool: Pool, by_system: Array) -> Array:
    """The rows of systems, then the differences of two (:func:`pairs`)."""
    one, other = (np.array([pair[at] for pair in pairs(pool.systems)], dtype=int) for at in (0, 1))
    return np.concatenate([by_system, by_system[one] - by_system[other]])


def figures(pool: Pool, relevance: Array, least: Array, counted: Mask) -> Figures:
    """Precision, recall and nDCG at k, means over questions, for relevances that may be estimates of sums (a passage's
    value may lie outside 0 to 1).

    Precision is about all questions, recall and nDCG about those ``counted`` (true by question). Per question recall is
    ``sum_topk y / R`` and nDCG ``sum_topk y / log2(rank + 1) / ideal(R)``, ``R = sum y`` over the pool, taken as
    no less than ``least`` (by question; what is known already). Influences are derivatives (Taylor linearisation).
    """
    top, of = pool.within_k(), pool.question
    weight = counted[of] / max(1, int(counted.sum()))
    means = [_mean(pool.sums(top * relevance) / pool.k, np.ones(pool.questions))]
    influence = [top / (pool.k * pool.questions)]
    for ratio in ratios(pool, np.maximum(pool.sums(relevance), least)).values():
        value = pool.sums(ratio.gain * relevance) / ratio.perfect
        means.append(_mean(value, counted))
        influence.append(weight * (ratio.gain - (value * ratio.slope)[:, of]) / ratio.perfect[of])
    by_metric = ([mean for mean, _ in means], influence, [rest for _, rest in means])
    return Figures(*(np.array([with_pairs(pool, each) for each in found]) for found in by_metric))


def _mean(values: Array, weights: Array | Mask) -> tuple[Array, Array]:
    """The mean over questions (last axis) that have weight, and each one's share of its deviation."""
    share = weights / max(1.0, float(weights.sum()))
    mean = (values * share).sum(axis=-1)
    return mean, share * (values - mean[..., None])
