"""What statistics read and give back: ratings, their consensus; a number or a reason, with no NaN and no infinity."""

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
    """Why a statistic or its interval does not exist; ``evaluation/messages/reasons.py`` has the sentences."""

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
    """A finite ``value``, or ``None`` with the reason."""

    value: float | None
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.value is None) != bool(self.reason):
            raise ValueError("a statistic has either a value or a reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"not a finite value: {self.value}")


@dataclass(frozen=True, slots=True)
class Figures:
    """One statistic over a batch of weightings (bootstrap resamples, or a single one).

    ``values`` and ``defined`` have the batch's shape; where not defined the value is 0 and means nothing.
    """

    values: Array
    defined: Flags

    def single(self, reason: str) -> Statistic:
        """The statistic of a batch of one; ``reason`` says why, where it is undefined."""
        return Statistic(float(self.values)) if bool(self.defined) else Statistic(None, str(reason))


def numbered(keys: Iterable[Hashable]) -> Indices:
    """The keys by number, from 0 in the order they first appear."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)


def ratio(numerator: Array, denominator: Array) -> Figures:
    """``numerator / denominator``, defined where the denominator is positive."""
    numerator, denominator = np.broadcast_arrays(
        np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    )
    defined = denominator > 0
    values = np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=defined)
    return Figures(values, np.asarray(defined))


def one_minus(figures: Figures) -> Figures:
    """``1 - figures``: agreement from a quotient of disagreements."""
    return Figures(np.where(figures.defined, 1.0 - figures.values, 0.0), figures.defined)


Item = Hashable
Items = Mapping[Item, Mapping[str, float | str]]  # item -> rater -> value


class Rating(NamedTuple):
    """``value`` lies on the scale, or is a label; an item is rated once by a rater."""

    item: Item
    rater: str
    value: float | str


def by_item(ratings: Sequence[Rating]) -> dict[Item, dict[str, float | str]]:
    """Item -> rater -> value, in the order items first appear.

    :raises ValueError: where a rater rated an item twice; the caller chooses the occasion that counts.
    """
    found: dict[Item, dict[str, float | str]] = {}
    for rating in ratings:
        values = found.setdefault(rating.item, {})
        if rating.rater in values:
            raise ValueError(f"{rating.rater!r} rated item {rating.item!r} twice")
        values[rating.rater] = rating.value
    return found


def raters_of(items: Items) -> list[str]:
    """All raters, by name."""
    return sorted({rater for values in items.values() for rater in values})


def weights_of(items: Iterable[Item], weights: Mapping[Item, float] | None) -> list[float] | None:
    """The weights of the items in their order; ``None`` where all count the same."""
    return None if weights is None else [weights[item] for item in items]


MEAN_DIGITS = 9  # means are rounded here before halves go up, so that 2.4999999999 from weighting counts as 2.5


def consensus(values: Sequence[float | str], scale: Scale) -> float | str | None:
    """The unrounded mean of the ratings; for classes the most frequent label, ``None`` where two are tied for it.

    :raises ValueError: without any rating.
    """
    if not values:
        raise ValueError("no ratings to agree on")
    if scale.kind is ScaleKind.CLASS:
        ranked = Counter(str(value) for value in values).most_common(2)
        return None if len(ranked) == 2 and ranked[0][1] == ranked[1][1] else ranked[0][0]
    return math.fsum(float(value) for value in values) / len(values)


def rounded_half_up(mean: float) -> int:
    """The level next to a mean of levels; a mean exactly between two levels gives the upper one, on negative scales
    too (-0.5 becomes 0)."""
    return math.floor(round(mean, MEAN_DIGITS) + 0.5)


LONGEST_IN_DAYS = 14
LONGEST_IN_WEEKS = 120


def period_names(dates: Sequence[date]) -> list[str]:
    """The name of each date's period, such that names sort by time: the day (``2026-11-20``) where all lie within two
    weeks, the ISO week (``2026-W47``) within four months, else the month (``2026-11``)."""
    if not dates:
        return []
    span = (max(dates) - min(dates)).days
    if span < LONGEST_IN_DAYS:
        return [one.isoformat() for one in dates]
    if span < LONGEST_IN_WEEKS:
        return ["{:04}-W{:02}".format(*one.isocalendar()[:2]) for one in dates]
    return [f"{one.year:04}-{one.month:02}" for one in dates]
