"""From ratings as they were given to the distinct weighted pairs and confusion matrices that statistics read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evaluation.core.registry import Scale, ScaleKind
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
    kept: list[int] = []
    values: list[tuple[float, float]] = []
    excluded: Counter[str] = Counter()
    for position, (ours, theirs) in enumerate(zip(judge, expert_means, strict=True)):
        pair = _pair(ours, theirs, scale)
        if isinstance(pair, str):
            excluded[pair] += 1
        else:
            kept.append(position)
            values.append(pair)
    array = np.array(values, dtype=np.float64).reshape(len(values), 2)
    distinct, cell = np.unique(array, axis=0, return_inverse=True)
    categories = Categories(scale, tuple(bins))
    return Layout(
        kept=np.array(kept, dtype=np.int64),
        cell=cell.reshape(-1).astype(np.int64),
        item_weight=_item_weights(weights, kept),
        judge=distinct[:, 0],
        expert=distinct[:, 1],
        judge_category=np.array([categories.find(v) for v in distinct[:, 0]], dtype=np.int64),
        expert_category=np.array([categories.find(v) for v in distinct[:, 1]], dtype=np.int64),
        category_values=categories.values,
        labels=categories.labels,
        excluded=dict(sorted(excluded.items())),
    )


def _pair(ours: float | str | None, theirs: float | str | None, scale: Scale) -> tuple[float, float] | str:
    """The pair as numbers (classes by position), or why it is left out."""
    if scale.kind is ScaleKind.CLASS:
        return _class_pair(ours, theirs, scale)
    if theirs is None:
        return NO_EXPERT_VALUE
    expert = float(theirs)
    if not scale.holds_mean(expert):
        raise ValueError(f"an expert's value {expert} is not on the scale {scale}")
    if scale.kind is ScaleKind.YES_NO and math.isclose(expert, 0.5, abs_tol=1e-9):
        return EXPERT_TIE
    if ours is None:
        return NO_JUDGE_VALUE
    return (float(ours), expert) if scale.holds_mean(float(ours)) else JUDGE_OFF_SCALE


def _class_pair(ours: float | str | None, theirs: float | str | None, scale: Scale) -> tuple[float, float] | str:
    if theirs is None:
        return EXPERT_TIE
    if theirs not in scale.labels:
        raise ValueError(f"an expert's label {theirs!r} is not on the scale {scale}")
    if ours is None:
        return NO_JUDGE_VALUE
    if ours not in scale.labels:
        return JUDGE_OFF_SCALE
    return float(scale.labels.index(str(ours))), float(scale.labels.index(str(theirs)))


def _item_weights(weights: Sequence[float] | None, kept: list[int]) -> Array:
    if weights is None or not kept:
        return np.ones(len(kept))
    chosen = np.array([weights[position] for position in kept], dtype=np.float64)
    if not np.isfinite(chosen).all() or (chosen <= 0).any():
        raise ValueError("weights must be positive and finite; leave items without a probability out")
    return np.asarray(chosen / chosen.mean())
