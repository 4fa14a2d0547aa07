"""What a statistic gives back: a number, or the reason why there is none. No NaN and no infinity ever leave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


class Undefined(StrEnum):
    """Why a statistic or its interval does not exist; ``evaluation/wording/reasons.py`` has the sentences."""

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
