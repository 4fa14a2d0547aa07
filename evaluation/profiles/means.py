"""The inputs of profile arithmetic, one part at a time: put on one scale, with worst and best bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evaluation.profiles.spec import Normalise, OnFailure, Part, ProfileSpec

TOLERANCE_DIGITS = 9
MOST_FAILED = 0.10  # above this share of failed results a run has no headline, only bounds


@dataclass(frozen=True, slots=True)
class PartMean:
    """A metric over the answers of a run: the mean of the scored results on the metric's own scale, how many results
    have which status, and the scale's ends.

    :raises ValueError: when the mean is there without scored results, missing with them, or off the scale.
    """

    metric: str
    mean: float | None
    scored: int
    failed: int
    not_applicable: int
    low: float
    high: float

    def __post_init__(self) -> None:
        if min(self.scored, self.failed, self.not_applicable) < 0:
            raise ValueError(f"{self.metric}: a count below 0")
        if not self.low < self.high:
            raise ValueError(f"{self.metric}: the scale's low end {self.low} is not below its high end {self.high}")
        if (self.mean is None) != (self.scored == 0):
            raise ValueError(f"{self.metric}: a mean needs scored results, and scored results have a mean")
        if self.mean is not None and not (math.isfinite(self.mean) and self.low <= rounded(self.mean) <= self.high):
            raise ValueError(f"{self.metric}: the mean {self.mean} is not on the scale {self.low}..{self.high}")

    @property
    def applicable(self) -> int:
        """Results the metric should have given: scored and failed."""
        return self.scored + self.failed

    @property
    def too_many_failed(self) -> bool:
        """Whether more than 10% of the results that should be there failed."""
        return bool(self.applicable) and rounded(self.failed / self.applicable) > MOST_FAILED


def rounded(value: float) -> float:
    """The value as thresholds, bands and grades compare it: 0.35 x 0.9 + ... must not fail at .7999999."""
    return round(value, TOLERANCE_DIGITS)


def on_unit_scale(profile: ProfileSpec, part: Part, value: float, low: float, high: float) -> float:
    """A value of the metric's scale ``low..high`` as the profile adds it up, usually 0-1.

    :raises ValueError: when ``by_max`` has nothing above 0 to divide by.
    """
    if profile.normalise is Normalise.MIN_MAX:
        return (value - low) / (high - low)
    top = part.top if part.top is not None else high
    if top <= 0:
        raise ValueError(f"{part.metric}: by_max divides by the scale's upper end, which is {top}")
    return value / top


def counted_mean(profile: ProfileSpec, mean: PartMean) -> float:
    """The mean that enters the overall score: failures left out, or counted as 0 where the profile says so.

    :raises ValueError: when no result counts.
    """
    if profile.on_failure is OnFailure.ZERO and mean.applicable:
        return (mean.mean or 0.0) * mean.scored / mean.applicable
    if mean.mean is None:
        raise ValueError(f"{mean.metric}: no scored result")
    return mean.mean


def worst_and_best(profile: ProfileSpec, mean: PartMean) -> tuple[float, float]:
    """The mean had every failed result been the worst, or the best, of the scale (0 if the profile counts it so).

    :raises ValueError: when the metric has neither scored nor failed results.
    """
    if not mean.applicable:
        raise ValueError(f"{mean.metric}: no result")
    total = (mean.mean or 0.0) * mean.scored
    worst = worst_value(profile, mean.low)
    return (total + mean.failed * worst) / mean.applicable, (total + mean.failed * mean.high) / mean.applicable


def worst_value(profile: ProfileSpec, low: float) -> float:
    """The lowest value a failed result may stand for."""
    return min(low, 0.0) if profile.on_failure is OnFailure.ZERO else low
