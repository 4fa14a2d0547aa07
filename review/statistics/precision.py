"""How many labels give an interval of a wanted width or show a wanted difference, and what to spend on next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluation.core.errors import Refused
from review.statistics.agreement.variance import Source, VarianceSplit
from review.statistics.correction.frame import LEAST_LABELS
from review.statistics.correction.outcome import t_quantile
from review.statistics.paired_tests.paired import POWER
from review.statistics.sampling.draw import allocate

PILOT_LABELS = 5  # with fewer ratings of a stratum its deviation is taken from all strata together


def pilot_deviations(
    residuals: Mapping[str, Sequence[float]], sizes: Mapping[str, int], floor: float
) -> dict[str, float]:
    """The standard deviation of the residuals (expert minus b times judge) of each stratum in ``sizes``.

    A stratum with fewer than 5 ratings takes the deviation of all together. ``floor`` (in the scale's units, such as
    a tenth of its width) keeps a stratum in which the pilot saw no difference from being given up.
    """
    every = [value for values in residuals.values() for value in values]
    together = deviation(every) if len(every) >= 2 else floor
    return {
        str(name): max(
            floor, deviation(residuals[str(name)]) if len(residuals.get(str(name), ())) >= PILOT_LABELS else together
        )
        for name in sizes
    }


def deviation(values: Sequence[float]) -> float:
    """The sample standard deviation of at least two values."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


@dataclass(frozen=True, slots=True)
class PlannedStratum:
    """``size`` answers, and the standard deviation of expert minus b times judge among them, from a pilot or a stated
    guess (an upper one: the judge's RMSE against the experts)."""

    name: str
    size: int
    deviation: float


@dataclass(frozen=True, slots=True)
class Plan:
    """``labels`` in all, beside those that are certain; the half-width they are expected to give, the
    difference between two runs rated like this that is found four times in five, and the reviewers' minutes where
    the seconds per item are known."""

    labels: int
    half_width: float
    difference: float
    minutes: float | None


def expected_half_width(
    strata: Sequence[PlannedStratum],
    counts: Mapping[str, int],
    confidence: float = 0.95,
    slopes: int = 1,
    certain: int = 0,
) -> float:
    """``t sqrt(sum (N_h / N)^2 (1 - n_h / N_h) s_h^2 / n_h)`` with k - H - slopes degrees of freedom, in the units of
    the deviations. ``certain`` answers are rated already and belong to no stratum: they add to N alone. A stratum that
    is drawn completely adds neither variance nor freedom."""
    error = _error(strata, counts, certain)
    return t_quantile(0.5 + confidence / 2.0, _freedom(strata, counts, slopes)) * error


def expected_difference(
    strata: Sequence[PlannedStratum],
    counts: Mapping[str, int],
    confidence: float = 0.95,
    power: float = POWER,
    certain: int = 0,
) -> float:
    """The smallest true difference between the corrected scores of two runs, each rated like this on its own, that is
    found with probability ``power``: ``(t_a + t_p) sqrt(2)`` times the error of one of them (J. Cohen, 1988,
    Statistical Power Analysis, 2). It is about these questions, and leaves out how far others would differ."""
    freedom = _freedom(strata, counts, 1)
    factor = t_quantile(0.5 + confidence / 2.0, freedom) + t_quantile(power, freedom)
    return factor * math.sqrt(2.0) * _error(strata, counts, certain)


def labels_for_width(
    strata: Sequence[PlannedStratum],
    half_width: float,
    confidence: float = 0.95,
    seconds_per_item: float | None = None,
    reviewers_per_item: int = 1,
    certain: int = 0,
) -> Plan:
    """The least labels, spread over the strata by Neyman's allocation, whose expected half-width is at most
    ``half_width``; with the ``certain`` ones never fewer than the 20 below which no corrected figure is shown, nor
    than 2 of a stratum. Where no sample of them is enough, the whole frame.

    :raises Refused: ``empty_frame``. :raises ValueError: for a half-width that is not positive.
    """
    if half_width <= 0:
        raise ValueError("a half-width is positive")
    return _plan(
        strata,
        lambda counts: expected_half_width(strata, counts, confidence, certain=certain) <= half_width,
        (confidence, POWER, certain),
        None if seconds_per_item is None else seconds_per_item * reviewers_per_item,
    )


def labels_for_difference(
    strata: Sequence[PlannedStratum],
    difference: float,
    confidence: float = 0.95,
    power: float = POWER,
    seconds_per_item: float | None = None,
    reviewers_per_item: int = 1,
    certain: int = 0,
) -> Plan:
    """The least labels of each of two runs that show a true ``difference`` between their corrected scores with
    probability ``power``; for the rest as :func:`labels_for_width`.

    :raises Refused: ``empty_frame``. :raises ValueError: for a difference that is not positive.
    """
    if difference <= 0:
        raise ValueError("a difference to find is positive")
    return _plan(
        strata,
        lambda counts: expected_difference(strata, counts, confidence, power, certain) <= difference,
        (confidence, power, certain),
        None if seconds_per_item is None else seconds_per_item * reviewers_per_item,
    )


def plan_of(
    strata: Sequence[PlannedStratum],
    labels: int,
    confidence: float = 0.95,
    power: float = POWER,
    certain: int = 0,
    seconds: float | None = None,
) -> Plan:
    """What so many labels, spread by Neyman's allocation, are expected to give; ``seconds`` of work are one label."""
    counts = _allocated(strata, labels)
    return Plan(
        labels,
        expected_half_width(strata, counts, confidence, certain=certain),
        expected_difference(strata, counts, confidence, power, certain),
        None if seconds is None else labels * seconds / 60.0,
    )


def _plan(
    strata: Sequence[PlannedStratum],
    enough: Callable[[Mapping[str, int]], bool],
    told: tuple[float, float, int],
    seconds: float | None,
) -> Plan:
    """More labels are never worse, so that halving finds the least that are enough."""
    confidence, power, certain = told
    frame = sum(one.size for one in strata)
    if not frame:
        raise Refused("empty_frame")
    least = sum(min(2, one.size) for one in strata)
    low, high = min(frame, max(LEAST_LABELS - certain, least)), frame
    while low < high:
        middle = (low + high) // 2
        if enough(_allocated(strata, middle)):
            high = middle
        else:
            low = middle + 1
    return plan_of(strata, low, confidence, power, certain, seconds)


def _error(strata: Sequence[PlannedStratum], counts: Mapping[str, int], certain: int) -> float:
    frame = sum(one.size for one in strata) + certain
    variance = sum(
        (one.size / frame) ** 2 * (1.0 - counts[one.name] / one.size) * one.deviation**2 / counts[one.name]
        for one in strata
    )
    return math.sqrt(max(0.0, variance))


def _freedom(strata: Sequence[PlannedStratum], counts: Mapping[str, int], slopes: int) -> int:
    sampled = [one for one in strata if counts[one.name] < one.size]
    return max(1, sum(counts[one.name] for one in sampled) - len(sampled) - slopes)


def _allocated(strata: Sequence[PlannedStratum], labels: int) -> dict[str, int]:
    deviations = {one.name: one.deviation for one in strata}
    return allocate({one.name: one.size for one in strata}, labels, 2, deviations)


class Spend(StrEnum):
    """What more can be had of."""

    QUESTIONS = "questions"
    REVIEWERS = "reviewers"
    RATINGS = "ratings"  # more ratings, best of answers that nobody has rated
    REPEATS = "repeats"  # more judgements of each answer by the judge


@dataclass(frozen=True, slots=True)
class Advice:
    """What each kind of spending could take off the variance of a mean, as shares that sum to 1; ``first`` is the
    largest, ``None`` where nothing varies or nothing is known. Doubling what it names takes away half of its share."""

    shares: Mapping[Spend, float]
    first: Spend | None


def what_next(split: VarianceSplit) -> Advice:
    """The parts of the variance of a corrected mean over answers like these by people like these: the answers'
    differences over the answers judged, leniency over the reviewers, the judge's error over the answers rated, taste
    and rest over the ratings, the judge's noise over its scores (the design study of generalizability theory;
    R. L. Brennan, 2001, Generalizability Theory, 4). A source that is not known counts for nothing: the overlap or the
    repeats that would tell it come first, and are named where it is reported."""
    of, design = split.variances, split.design
    if not design.answers:
        return Advice({}, None)
    ratings = design.answers * design.ratings
    parts = {
        Spend.QUESTIONS: of.get(Source.ANSWERS, 0.0) / max(design.answers, design.judged),
        Spend.REVIEWERS: of.get(Source.REVIEWERS, 0.0) / max(1, design.reviewers),
        Spend.RATINGS: of.get(Source.JUDGE, 0.0) / design.answers
        + (of.get(Source.TASTE, 0.0) + of.get(Source.REST, 0.0)) / ratings,
        Spend.REPEATS: of.get(Source.NOISE, 0.0) / max(1.0, design.judged * design.repeats),
    }
    total = sum(parts.values())
    if total <= 0:
        return Advice({}, None)
    return Advice({spend: part / total for spend, part in parts.items()}, max(parts, key=lambda spend: parts[spend]))
