"""How many labels give an interval of a wanted width, and what width a number of labels gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.errors import Refused
from review.correction.assess import LEAST_LABELS
from review.correction.influence import t_quantile
from review.sampling.allocate import allocate


@dataclass(frozen=True, slots=True)
class PlannedStratum:
    """``size`` answers, and the standard deviation of expert minus b times judge among them, from a pilot or a stated
    guess (an upper one: the judge's RMSE against the experts)."""

    name: str
    size: int
    deviation: float


@dataclass(frozen=True, slots=True)
class Plan:
    """``labels`` in all and by stratum, the half-width they are expected to give, and the reviewers' minutes where
    the seconds per item are known."""

    labels: int
    by_stratum: Mapping[str, int]
    half_width: float
    minutes: float | None


def expected_half_width(
    strata: Sequence[PlannedStratum], counts: Mapping[str, int], confidence: float = 0.95, slopes: int = 1
) -> float:
    """``t sqrt(sum (N_h / N)^2 (1 - n_h / N_h) s_h^2 / n_h)`` with k - H - slopes degrees of freedom, in the units of
    the deviations."""
    frame = sum(one.size for one in strata)
    variance = sum(
        (one.size / frame) ** 2 * (1.0 - counts[one.name] / one.size) * one.deviation**2 / counts[one.name]
        for one in strata
    )
    freedom = max(1, sum(counts[one.name] for one in strata) - len(strata) - slopes)
    return t_quantile(0.5 + confidence / 2.0, freedom) * math.sqrt(max(0.0, variance))


def labels_for_width(
    strata: Sequence[PlannedStratum],
    half_width: float,
    confidence: float = 0.95,
    seconds_per_item: float | None = None,
    reviewers_per_item: int = 1,
) -> Plan:
    """The least labels, spread over the strata by Neyman's allocation, whose expected half-width is at most
    ``half_width``; never fewer than the 20 below which no corrected figure is shown, nor than 2 of a stratum. Where
    no sample of them is enough, the whole frame.

    :raises Refused: ``empty_frame``. :raises ValueError: for a half-width that is not positive.
    """
    if half_width <= 0:
        raise ValueError("a half-width is positive")
    frame = sum(one.size for one in strata)
    if not frame:
        raise Refused("empty_frame")
    low, high = min(frame, max(LEAST_LABELS, 2 * len(strata))), frame
    while low < high:
        middle = (low + high) // 2
        if expected_half_width(strata, _allocated(strata, middle), confidence) <= half_width:
            high = middle
        else:
            low = middle + 1
    counts = _allocated(strata, low)
    seconds = None if seconds_per_item is None else low * reviewers_per_item * seconds_per_item / 60.0
    return Plan(low, counts, expected_half_width(strata, counts, confidence), seconds)


def _allocated(strata: Sequence[PlannedStratum], labels: int) -> dict[str, int]:
    deviations = {one.name: one.deviation for one in strata}
    return allocate({one.name: one.size for one in strata}, labels, 2, deviations)
