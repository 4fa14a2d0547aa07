"""From ratings as they were given to the distinct weighted pairs and confusion matrices that statistics read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from evaluation.core.scales import Scale, ScaleKind
from review.statistics.agreement.statistic import Array, Indices, Undefined, rounded_half_up

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

    @property
    def share(self) -> Array:
        """The weights scaled to sum to 1 in each member of the batch; 0 where they sum to 0."""
        total = self.total
        return np.asarray(self.weight / np.where(total > 0, total, 1.0)[..., None])

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


NO_EXPERT_VALUE, EXPERT_TIE = "no_expert_value", "expert_tie"
NO_JUDGE_VALUE, JUDGE_OFF_SCALE = "no_judge_value", "judge_off_scale"
TIE_WITHIN = 1e-9  # of a half, on yes and no


@dataclass(frozen=True, slots=True)
class Layout:
    """Distinct pairs of values and of categories, and to which of them each kept item belongs.

    ``kept`` are positions in the input; ``cell`` and ``item_weight`` belong to them. ``judge``, ``expert`` and the
    categories belong to the distinct pairs. Reals without bins have no categories. Weights have a mean of 1.
    """

    kept: Indices
    cell: Indices
    item_weight: Array
    judge: Array
    expert: Array
    judge_category: Indices
    expert_category: Indices
    category_values: Array
    labels: tuple[str | float, ...]
    excluded: dict[str, int]

    @property
    def weight(self) -> Array:
        """The weight of each distinct pair in the full sample."""
        return np.bincount(self.cell, weights=self.item_weight, minlength=len(self.judge)).astype(np.float64)

    def pairs(self, weight: Array) -> Pairs:
        """The pairs of values under ``weight``, shape (..., distinct pairs)."""
        return Pairs(self.judge, self.expert, weight)

    def confusion(self, weight: Array) -> Confusion:
        """The confusion matrix under ``weight``; only where there are categories."""
        return confusion(weight, self.expert_category, self.judge_category, self.category_values)


@dataclass(frozen=True, slots=True)
class Categories:
    """The declared categories of a scale: their values for weighting, their labels, and how a value finds its own."""

    scale: Scale
    bins: tuple[float, ...]

    @property
    def values(self) -> Array:
        """Levels by their value; bins and classes by their position; nothing for reals without bins."""
        if self.scale.levels:
            return np.array(self.scale.levels, dtype=np.float64)
        return np.arange(len(self.labels), dtype=np.float64)

    @property
    def labels(self) -> tuple[str | float, ...]:
        """The levels, the class labels, or the bins as ``[low, high)``."""
        if self.scale.kind is ScaleKind.CLASS:
            return self.scale.labels
        if self.scale.levels:
            return self.scale.levels
        return tuple(
            f"[{low:g}, {high:g}{']' if position == len(self.bins) - 2 else ')'}"
            for position, (low, high) in enumerate(pairwise(self.bins))
        )

    def find(self, value: float) -> int:
        """The category of a value: the rounded level, the class itself, or the bin; 0 where there are none."""
        if self.scale.kind is ScaleKind.CLASS:
            return int(value)
        if self.scale.levels:
            return rounded_half_up(value) - int(self.scale.low)
        if not self.bins:
            return 0
        return min(max(int(np.searchsorted(self.bins, value, side="right")) - 1, 0), len(self.bins) - 2)


def lay_out(
    judge: Sequence[float | str | None],
    expert_means: Sequence[float | str | None],
    scale: Scale,
    weights: Sequence[float] | None,
    bins: Sequence[float],
) -> Layout:
    """Drop what cannot be compared, count why, and fold equal pairs.

    :raises ValueError: for unequal lengths, an expert's value off the scale, or a weight that is not positive.
    """
    if len(judge) != len(expert_means) or (weights is not None and len(weights) != len(judge)):
        raise ValueError("judge, experts and weights must have the same length")
    ours, theirs = _column(judge, scale), _column(expert_means, scale)
    no_expert = np.array([one is None for one in expert_means], dtype=np.bool_)
    off_scale = ~no_expert & ~_on(theirs, scale)
    if off_scale.any():
        raise ValueError(f"an expert's value {expert_means[int(off_scale.argmax())]!r} is not on the scale {scale}")
    tie = np.abs(theirs - 0.5) <= TIE_WITHIN if scale.kind is ScaleKind.YES_NO else np.zeros_like(no_expert)
    no_judge = np.array([one is None for one in judge], dtype=np.bool_)
    reasons = (
        (EXPERT_TIE if scale.kind is ScaleKind.CLASS else NO_EXPERT_VALUE, no_expert),
        (EXPERT_TIE, tie),
        (NO_JUDGE_VALUE, no_judge),
        (JUDGE_OFF_SCALE, ~_on(ours, scale)),
    )
    left = np.ones_like(no_expert)
    excluded: Counter[str] = Counter()
    for reason, there in reasons:  # the first that holds is what is said
        excluded[reason] += int((left & there).sum())
        left &= ~there
    kept = np.flatnonzero(left)
    pairs, cell = np.unique(ours[kept] + 1j * theirs[kept], return_inverse=True)  # sorted by judge, then expert
    categories = Categories(scale, tuple(bins))
    return Layout(
        kept=kept.astype(np.int64),
        cell=cell.reshape(-1).astype(np.int64),
        item_weight=_item_weights(weights, kept),
        judge=pairs.real,
        expert=pairs.imag,
        judge_category=np.array([categories.find(v) for v in pairs.real], dtype=np.int64),
        expert_category=np.array([categories.find(v) for v in pairs.imag], dtype=np.int64),
        category_values=categories.values,
        labels=categories.labels,
        excluded={reason: count for reason, count in sorted(excluded.items()) if count},
    )


def _column(values: Sequence[float | str | None], scale: Scale) -> Array:
    """The values as numbers, classes by position; NaN for what is none or no class."""
    if scale.kind is ScaleKind.CLASS:
        places: dict[float | str | None, float] = {label: float(place) for place, label in enumerate(scale.labels)}
        return np.array([places.get(one, math.nan) for one in values], dtype=np.float64)
    return np.array([math.nan if one is None else one for one in values], dtype=np.float64)


def _on(values: Array, scale: Scale) -> npt.NDArray[np.bool_]:
    """Which values can be means on the scale, or are its classes."""
    if scale.kind is ScaleKind.CLASS:
        return ~np.isnan(values)
    return np.isfinite(values) & (values >= scale.low) & (values <= scale.high)


def _item_weights(weights: Sequence[float] | None, kept: Indices) -> Array:
    if weights is None or not len(kept):
        return np.ones(len(kept))
    chosen = np.asarray(weights, dtype=np.float64)[kept]
    if not np.isfinite(chosen).all() or (chosen <= 0).any():
        raise ValueError("weights must be positive and finite; leave items without a probability out")
    return np.asarray(chosen / chosen.mean())
