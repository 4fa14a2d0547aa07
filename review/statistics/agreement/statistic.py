"""Inputs and outputs of agreement statistics: ratings, consensus, and finite values or reasons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.core.scales import Scale, ScaleKind

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


class Undefined(StrEnum):
    """Reason why a statistic or its interval is undefined; ``evaluation/messages/reasons.py`` has the sentences."""

    NO_PAIRS = "no_pairs"
    JUDGE_CONSTANT = "judge_constant"
    EXPERT_CONSTANT = "expert_constant"
    ONE_VALUE_ONLY = "one_value_only"
    NO_EXPERT_POSITIVE = "no_expert_positive"
    NO_EXPERT_NEGATIVE = "no_expert_negative"
    NO_JUDGE_POSITIVE = "no_judge_positive"
    NO_POSITIVE = "no_positive"
    ONE_EXPERT_CLASS = "one_expert_class"
    YES_NO_ONLY = "yes_no_only"
    CLASSES_HAVE_NO_ORDER = "classes_have_no_order"
    NEEDS_BINNING = "needs_binning"
    NO_DIRECTION = "no_direction"
    TOO_FEW_RATERS = "too_few_raters"
    TOO_FEW_GROUPS = "too_few_groups"
    NO_VARIATION = "no_variation"
    OFTEN_UNDEFINED = "often_undefined"


@dataclass(frozen=True, slots=True)
class Statistic:
    """Finite ``value``, or ``None`` with the reason."""

    value: float | None
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.value is None) != bool(self.reason):
            raise ValueError("a statistic has either a value or a reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"not a finite value: {self.value}")


@dataclass(frozen=True, slots=True)
class BatchStatistic:
    """One statistic over a batch of weightings (bootstrap resamples, or a single weighting).

    ``values`` and ``defined`` have the batch's shape. Undefined values are stored as 0."""

    values: Array
    defined: Flags

    def to_statistic(self, reason: str) -> Statistic:
        """Statistic of a batch of one; ``reason`` is used if it is undefined."""
        return Statistic(float(self.values)) if bool(self.defined) else Statistic(None, str(reason))


def factorize(keys: Iterable[Hashable]) -> Indices:
    """Integer code of each key, from 0 in order of first appearance."""
    code_by_key: dict[Hashable, int] = {}
    return np.array([code_by_key.setdefault(key, len(code_by_key)) for key in keys], dtype=np.int64)


def ratio(numerator: Array, denominator: Array) -> BatchStatistic:
    """``numerator / denominator``, defined if the denominator is positive."""
    numerator, denominator = np.broadcast_arrays(
        np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    )
    defined = denominator > 0
    values = np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=defined)
    return BatchStatistic(values, np.asarray(defined))


def one_minus(statistic: BatchStatistic) -> BatchStatistic:
    """``1 - statistic``: converts a ratio of disagreements to agreement."""
    return BatchStatistic(np.where(statistic.defined, 1.0 - statistic.values, 0.0), statistic.defined)


Item = Hashable
# Item -> rater -> value.
Items = Mapping[Item, Mapping[str, float | str]]


class Rating(NamedTuple):
    """Rating of an item by a rater. ``value`` lies on the scale, or is a label; a rater rates an item once."""

    item: Item
    rater: str
    value: float | str


def group_by_item(ratings: Sequence[Rating]) -> dict[Item, dict[str, float | str]]:
    """Ratings as item -> rater -> value, in the order items first appear.

    :raises ValueError: if a rater rated an item twice; the caller chooses the occasion that counts."""
    values_by_item: dict[Item, dict[str, float | str]] = {}
    for rating in ratings:
        values = values_by_item.setdefault(rating.item, {})
        if rating.rater in values:
            raise ValueError(f"{rating.rater!r} rated item {rating.item!r} twice")
        values[rating.rater] = rating.value
    return values_by_item


def rater_names(items: Items) -> list[str]:
    return sorted({rater for values in items.values() for rater in values})


def item_weights(items: Iterable[Item], weights: Mapping[Item, float] | None) -> list[float] | None:
    """Weights of the items in their order; ``None`` if all are equal."""
    return None if weights is None else [weights[item] for item in items]


# Means are rounded to these digits before rounding half up, so that 2.4999999999 from weighting counts as 2.5.
MEAN_DIGITS = 9


def consensus(values: Sequence[float | str], scale: Scale) -> float | str | None:
    """Unrounded mean of the ratings; for classes the most frequent label, ``None`` if two labels are tied.

    :raises ValueError: without any rating."""
    if not values:
        raise ValueError("no ratings to agree on")
    if scale.kind is ScaleKind.CLASS:
        ranked = Counter(str(value) for value in values).most_common(2)
        return None if len(ranked) == 2 and ranked[0][1] == ranked[1][1] else ranked[0][0]
    return math.fsum(float(value) for value in values) / len(values)


def rounded_half_up(mean: float) -> int:
    """Nearest level; a mean halfway between two levels gives the upper one, also for negative values (-0.5 becomes
    0)."""
    return math.floor(round(mean, MEAN_DIGITS) + 0.5)


MAX_SPAN_BY_DAY = 14
MAX_SPAN_BY_WEEK = 120


def period_names(dates: Sequence[date]) -> list[str]:
    """Name of each date's period; names sort by time.

    Days (``2026-11-20``) for a span under two weeks, ISO weeks (``2026-W47``) under four months, otherwise months
    (``2026-11``)."""
    if not dates:
        return []
    span = (max(dates) - min(dates)).days
    if span < MAX_SPAN_BY_DAY:
        return [day.isoformat() for day in dates]
    if span < MAX_SPAN_BY_WEEK:
        return ["{:04}-W{:02}".format(*day.isocalendar()[:2]) for day in dates]
    return [f"{day.year:04}-{day.month:02}" for day in dates]
