"""The pairs a statistic looks at: the judge's value beside the experts' mean, with weights, one or many weightings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array, Indices, Undefined

ROUNDING = 1e-12  # sums of squares below this share of the range count as zero


@dataclass(frozen=True, slots=True)
class Pairs:
    """Distinct pairs of values. ``judge`` and ``expert`` have shape (k,), ``weight`` (..., k): the leading axes are
    a batch, such as bootstrap resamples. Weights are scaled so that the full sample's sum is its number of pairs."""

    judge: Array
    expert: Array
    weight: Array

    @property
    def total(self) -> Array:
        """The sum of the weights, with the batch's shape."""
        return np.asarray(self.weight.sum(axis=-1))

    def mean(self, values: Array) -> Array:
        """The weighted mean of ``values``, one for each distinct pair; 0 where the weights sum to 0."""
        total = self.total
        return np.asarray((self.weight @ values) / np.where(total > 0, total, 1.0))

    def reason(self) -> Undefined:
        """Why a correlation of these pairs is undefined (batch of one)."""
        present = self.weight > 0
        if not present.any():
            return Undefined.NO_PAIRS
        if np.ptp(self.judge[present]) == 0:
            return Undefined.JUDGE_CONSTANT
        return Undefined.EXPERT_CONSTANT


@dataclass(frozen=True, slots=True)
class Confusion:
    """Weights of pairs by declared category: ``cells[..., i, j]`` where the experts gave category i and the judge j.

    ``values`` are the categories' numbers, in the same order; for classes their positions, which only nominal
    statistics may read.
    """

    cells: Array
    values: Array

    @property
    def total(self) -> Array:
        """The sum of the weights, with the batch's shape."""
        return np.asarray(self.cells.sum(axis=(-2, -1)))

    @property
    def expert_totals(self) -> Array:
        """Weight of each category by the experts, shape (..., categories)."""
        return np.asarray(self.cells.sum(axis=-1))

    @property
    def judge_totals(self) -> Array:
        """Weight of each category by the judge, shape (..., categories)."""
        return np.asarray(self.cells.sum(axis=-2))

    def distances(self) -> Array:
        """Absolute differences of the categories' values: kappa and AC2 weigh by value, not by position."""
        return np.asarray(np.abs(self.values[:, None] - self.values[None, :]))


def confusion(weight: Array, expert_category: Indices, judge_category: Indices, values: Array) -> Confusion:
    """The confusion matrix of distinct pairs (shape (k,)) under ``weight`` (shape (..., k))."""
    size = len(values)
    member = np.zeros((len(expert_category), size * size))
    member[np.arange(len(expert_category)), expert_category * size + judge_category] = 1.0
    return Confusion((weight @ member).reshape(*weight.shape[:-1], size, size), values)
