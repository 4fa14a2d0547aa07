"""Convert ratings to the distinct weighted pairs and confusion matrices that the statistics read."""

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

# Sums of squares below this share of the range count as zero.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Pairs:
    """Distinct pairs of values. ``judge`` and ``expert`` have shape (k,), ``weight`` (..., k).

    The leading axes are a batch, such as bootstrap resamples. Over the full sample the weights sum to the number of
    pairs."""

    judge: Array
    expert: Array
    weight: Array

    @property
    def total(self) -> Array:
        """Sum of the weights, with the batch's shape."""
        return np.asarray(self.weight.sum(axis=-1))

    @property
    def share(self) -> Array:
        """Weights scaled to sum to 1 in each batch member; 0 if they sum to 0."""
        total = self.total
        return np.asarray(self.weight / np.where(total > 0, total, 1.0)[..., None])

    def mean(self, values: Array) -> Array:
        """Weighted mean of ``values``, one for each distinct pair; 0 if the weights sum to 0."""
        total = self.total
        return np.asarray((self.weight @ values) / np.where(total > 0, total, 1.0))

    def constant_side_reason(self) -> Undefined:
        """Reason why a correlation of these pairs is undefined (batch of one)."""
        present = self.weight > 0
        if not present.any():
            return Undefined.NO_PAIRS
        if np.ptp(self.judge[present]) == 0:
            return Undefined.JUDGE_CONSTANT
        return Undefined.EXPERT_CONSTANT


@dataclass(frozen=True, slots=True)
class Confusion:
    """Weights of pairs by declared category: ``cells[..., i, j]`` for expert category i and judge category j.

    ``values`` are the numbers of the categories, in the same order. For classes they are positions, which only nominal
    statistics may use."""

    cells: Array
    values: Array

    @property
    def total(self) -> Array:
        """Sum of the weights, with the batch's shape."""
        return np.asarray(self.cells.sum(axis=(-2, -1)))

    @property
    def expert_totals(self) -> Array:
        """Weight of each expert category, shape (..., categories)."""
        return np.asarray(self.cells.sum(axis=-1))

    @property
    def judge_totals(self) -> Array:
        """Weight of each judge category, shape (..., categories)."""
        return np.asarray(self.cells.sum(axis=-2))

    def distances(self) -> Array:
        """Absolute differences of the categories' values: kappa and AC2 weight by value, not by position."""
        return np.asarray(np.abs(self.values[:, None] - self.values[None, :]))


def confusion(weight: Array, expert_category: Indices, judge_category: Indices, values: Array) -> Confusion:
    """Confusion matrix of distinct pairs (shape (k,)) under ``weight`` (shape (..., k))."""
    size = len(values)
    pair_in_cell = np.zeros((len(expert_category), size * size))
    pair_in_cell[np.arange(len(expert_category)), expert_category * size + judge_category] = 1.0
    return Confusion((weight @ pair_in_cell).reshape(*weight.shape[:-1], size, size), values)


NO_EXPERT_VALUE, EXPERT_TIE = "no_expert_value", "expert_tie"
NO_JUDGE_VALUE, JUDGE_OFF_SCALE = "no_judge_value", "judge_off_scale"
# Tolerance around a mean of one half, on yes/no scales.
TIE_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Layout:
    """Distinct pairs of values and categories, and the pair of each comparable item.

    ``positions`` are positions in the input; ``cell`` and ``item_weight`` are aligned with them. ``judge``, ``expert``
    and the categories are aligned with the distinct pairs. Continuous scales without bins have no categories. Weights
    have a mean of 1."""

    positions: Indices
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
        """Weight of each distinct pair in the full sample."""
        return np.bincount(self.cell, weights=self.item_weight, minlength=len(self.judge)).astype(np.float64)

    def pairs(self, weight: Array) -> Pairs:
        return Pairs(self.judge, self.expert, weight)

    def confusion(self, weight: Array) -> Confusion:
        """Confusion matrix under ``weight``; requires categories."""
        return confusion(weight, self.expert_category, self.judge_category, self.category_values)


@dataclass(frozen=True, slots=True)
class Categories:
    """Declared categories of a scale: their values for weighting, their labels, and the category of a value."""

    scale: Scale
    bins: tuple[float, ...]

    @property
    def values(self) -> Array:
        """Values of levels; positions of bins and classes; empty for continuous scales without bins."""
        if self.scale.levels:
            return np.array(self.scale.levels, dtype=np.float64)
        return np.arange(len(self.labels), dtype=np.float64)

    @property
    def labels(self) -> tuple[str | float, ...]:
        """Levels, class labels, or bins as ``[low, high)``."""
        if self.scale.kind is ScaleKind.CLASS:
            return self.scale.labels
        if self.scale.levels:
            return self.scale.levels
        return tuple(
            f"[{low:g}, {high:g}{']' if position == len(self.bins) - 2 else ')'}"
            for position, (low, high) in enumerate(pairwise(self.bins))
        )

    def category_index(self, value: float) -> int:
        """Index of a value's category: rounded level, class or bin; 0 without categories."""
        if self.scale.kind is ScaleKind.CLASS:
            return int(value)
        if self.scale.levels:
            return rounded_half_up(value) - int(self.scale.low)
        if not self.bins:
            return 0
        return min(max(int(np.searchsorted(self.bins, value, side="right")) - 1, 0), len(self.bins) - 2)


def build_layout(
    judge: Sequence[float | str | None],
    expert_means: Sequence[float | str | None],
    scale: Scale,
    weights: Sequence[float] | None,
    bins: Sequence[float],
) -> Layout:
    """Drop values that cannot be compared, count them by reason, and merge equal pairs.

    :raises ValueError: for unequal lengths, an expert's value off the scale, or a weight that is not positive."""
    if len(judge) != len(expert_means) or (weights is not None and len(weights) != len(judge)):
        raise ValueError("judge, experts and weights must have the same length")
    judge_values, expert_values = _numeric_column(judge, scale), _numeric_column(expert_means, scale)
    no_expert = np.array([value is None for value in expert_means], dtype=np.bool_)
    off_scale = ~no_expert & ~_on_scale(expert_values, scale)
    if off_scale.any():
        raise ValueError(f"an expert's value {expert_means[int(off_scale.argmax())]!r} is not on the scale {scale}")
    tie = np.abs(expert_values - 0.5) <= TIE_TOLERANCE if scale.kind is ScaleKind.YES_NO else np.zeros_like(no_expert)
    no_judge = np.array([value is None for value in judge], dtype=np.bool_)
    reasons = (
        (EXPERT_TIE if scale.kind is ScaleKind.CLASS else NO_EXPERT_VALUE, no_expert),
        (EXPERT_TIE, tie),
        (NO_JUDGE_VALUE, no_judge),
        (JUDGE_OFF_SCALE, ~_on_scale(judge_values, scale)),
    )
    comparable = np.ones_like(no_expert)
    excluded: Counter[str] = Counter()
    # An item is counted under the first reason that applies.
    for reason, applies in reasons:
        excluded[reason] += int((comparable & applies).sum())
        comparable &= ~applies
    positions = np.flatnonzero(comparable)
    # Pairs are sorted by judge, then by expert.
    pairs, cell = np.unique(judge_values[positions] + 1j * expert_values[positions], return_inverse=True)
    categories = Categories(scale, tuple(bins))
    return Layout(
        positions=positions.astype(np.int64),
        cell=cell.reshape(-1).astype(np.int64),
        item_weight=_item_weights(weights, positions),
        judge=pairs.real,
        expert=pairs.imag,
        judge_category=np.array([categories.category_index(v) for v in pairs.real], dtype=np.int64),
        expert_category=np.array([categories.category_index(v) for v in pairs.imag], dtype=np.int64),
        category_values=categories.values,
        labels=categories.labels,
        excluded={reason: count for reason, count in sorted(excluded.items()) if count},
    )


def _numeric_column(values: Sequence[float | str | None], scale: Scale) -> Array:
    """Values as numbers, classes by position; NaN for missing values and unknown classes."""
    if scale.kind is ScaleKind.CLASS:
        label_positions: dict[float | str | None, float] = {
            label: float(position) for position, label in enumerate(scale.labels)
        }
        return np.array([label_positions.get(value, math.nan) for value in values], dtype=np.float64)
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _on_scale(values: Array, scale: Scale) -> npt.NDArray[np.bool_]:
    """Flags of the values that can be means on the scale, or are its classes."""
    if scale.kind is ScaleKind.CLASS:
        return ~np.isnan(values)
    return np.isfinite(values) & (values >= scale.low) & (values <= scale.high)


def _item_weights(weights: Sequence[float] | None, positions: Indices) -> Array:
    if weights is None or not len(positions):
        return np.ones(len(positions))
    selected = np.asarray(weights, dtype=np.float64)[positions]
    if not np.isfinite(selected).all() or (selected <= 0).any():
        raise ValueError("weights must be positive and finite; leave items without a probability out")
    return np.asarray(selected / selected.mean())
