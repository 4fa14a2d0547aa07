"""Number of labels for an interval of a given width or a detectable difference, and advice on the next spending."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluation.core.errors import DomainError
from review.statistics.agreement.variance import VarianceSource, VarianceSplit
from review.statistics.correction.frame import MIN_LABELS
from review.statistics.paired_tests.paired import POWER
from review.statistics.sampling.draw import allocate
from review.statistics.student_t import t_quantile

# With fewer ratings, a stratum takes the deviation of all strata together.
MIN_PILOT_LABELS = 5


def pilot_deviations(
    residuals: Mapping[str, Sequence[float]], sizes: Mapping[str, int], floor: float
) -> dict[str, float]:
    """Standard deviation of the residuals (expert minus b times judge) of each stratum in ``sizes``.

    A stratum with fewer than 5 ratings takes the deviation of all strata together. ``floor``, in units of the scale,
    keeps a stratum in the sample if its pilot showed no difference."""
    all_residuals = [value for values in residuals.values() for value in values]
    pooled = standard_deviation(all_residuals) if len(all_residuals) >= 2 else floor
    return {
        str(name): max(
            floor,
            standard_deviation(residuals[str(name)])
            if len(residuals.get(str(name), ())) >= MIN_PILOT_LABELS
            else pooled,
        )
        for name in sizes
    }


def standard_deviation(values: Sequence[float]) -> float:
    """Sample standard deviation of at least two values."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


@dataclass(frozen=True, slots=True)
class PlannedStratum:
    """Stratum of ``size`` answers. ``deviation`` is the standard deviation of expert minus b times judge.

    It comes from a pilot or from an upper guess, such as the judge's RMSE against the experts."""

    name: str
    size: int
    deviation: float


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """Number of labels and their expected effect.

    ``labels`` excludes the answers that are certain. ``half_width`` is that of the expected interval. ``difference`` is
    the difference between two runs, rated alike, that is found in 4 of 5 cases. ``minutes`` is the reviewers' time, if
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
    """Expected half-width of the interval, in the units of the deviations.

    ``t sqrt(sum (N_h / N)^2 (1 - n_h / N_h) s_h^2 / n_h)`` with k - H - slopes degrees of freedom. ``certain`` answers
    are rated already and belong to no stratum: they count in N only. A fully drawn stratum adds neither variance nor
    degrees of freedom."""
    standard_error = _standard_error(strata, counts, certain)
    return t_quantile(0.5 + confidence / 2.0, _degrees_of_freedom(strata, counts, slopes)) * standard_error


def expected_difference(
    strata: Sequence[PlannedStratum],
    counts: Mapping[str, int],
    confidence: float = 0.95,
    power: float = POWER,
    certain: int = 0,
) -> float:
    """Smallest true difference between two corrected scores that is found with probability ``power``.

    Both runs are rated independently with these labels: ``(t_a + t_p) sqrt(2)`` times the error of one run (J. Cohen,
    1988, Statistical Power Analysis, 2). It is about these questions and ignores how other questions would differ."""
    freedom = _degrees_of_freedom(strata, counts, 1)
    factor = t_quantile(0.5 + confidence / 2.0, freedom) + t_quantile(power, freedom)
    return factor * math.sqrt(2.0) * _standard_error(strata, counts, certain)


def labels_for_width(
    strata: Sequence[PlannedStratum],
    half_width: float,
    confidence: float = 0.95,
    seconds_per_item: float | None = None,
    reviewers_per_item: int = 1,
    certain: int = 0,
) -> LabelPlan:
    """Smallest number of labels with an expected half-width of at most ``half_width``, under Neyman allocation.

    With the ``certain`` answers the plan has at least the 20 labels that a corrected score needs, and at least 2 in
    each stratum. If no sample is enough, the plan covers the whole frame.

    :raises DomainError: ``empty_frame``. :raises ValueError: for a half-width that is not positive."""
    if half_width <= 0:
        raise ValueError("a half-width is positive")
    return _smallest_plan(
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
) -> LabelPlan:
    """Smallest number of labels per run that shows a true ``difference`` with probability ``power``.

    The minimum numbers are those of :func:`labels_for_width`.

    :raises DomainError: ``empty_frame``. :raises ValueError: for a difference that is not positive."""
    if difference <= 0:
        raise ValueError("a difference to find is positive")
    return _smallest_plan(
        strata,
        lambda counts: expected_difference(strata, counts, confidence, power, certain) <= difference,
        (confidence, power, certain),
        None if seconds_per_item is None else seconds_per_item * reviewers_per_item,
    )


def label_plan(
    strata: Sequence[PlannedStratum],
    labels: int,
    confidence: float = 0.95,
    power: float = POWER,
    certain: int = 0,
    seconds: float | None = None,
) -> LabelPlan:
    """Expected effect of ``labels`` labels under Neyman allocation; one label takes ``seconds`` of work."""
    counts = _neyman_allocation(strata, labels)
    return LabelPlan(
        labels,
        expected_half_width(strata, counts, confidence, certain=certain),
        expected_difference(strata, counts, confidence, power, certain),
        None if seconds is None else labels * seconds / 60.0,
    )


def _smallest_plan(
    strata: Sequence[PlannedStratum],
    is_sufficient: Callable[[Mapping[str, int]], bool],
    parameters: tuple[float, float, int],
    seconds: float | None,
) -> LabelPlan:
    """Find the smallest sufficient number of labels by bisection, because more labels are never worse."""
    confidence, power, certain = parameters
    frame_size = sum(stratum.size for stratum in strata)
    if not frame_size:
        raise DomainError("empty_frame")
    minimum = sum(min(2, stratum.size) for stratum in strata)
    low, high = min(frame_size, max(MIN_LABELS - certain, minimum)), frame_size
    while low < high:
        middle = (low + high) // 2
        if is_sufficient(_neyman_allocation(strata, middle)):
            high = middle
        else:
            low = middle + 1
    return label_plan(strata, low, confidence, power, certain, seconds)


def _standard_error(strata: Sequence[PlannedStratum], counts: Mapping[str, int], certain: int) -> float:
    frame_size = sum(stratum.size for stratum in strata) + certain
    variance = sum(
        (stratum.size / frame_size) ** 2
        * (1.0 - counts[stratum.name] / stratum.size)
        * stratum.deviation**2
        / counts[stratum.name]
        for stratum in strata
    )
    return math.sqrt(max(0.0, variance))


def _degrees_of_freedom(strata: Sequence[PlannedStratum], counts: Mapping[str, int], slopes: int) -> int:
    sampled = [stratum for stratum in strata if counts[stratum.name] < stratum.size]
    return max(1, sum(counts[stratum.name] for stratum in sampled) - len(sampled) - slopes)


def _neyman_allocation(strata: Sequence[PlannedStratum], labels: int) -> dict[str, int]:
    deviations = {stratum.name: stratum.deviation for stratum in strata}
    return allocate({stratum.name: stratum.size for stratum in strata}, labels, 2, deviations)


class SpendOption(StrEnum):
    """Resource that can be added to a study."""

    QUESTIONS = "questions"
    REVIEWERS = "reviewers"
    # Answers that nobody has rated yet come first.
    RATINGS = "ratings"
    # Judgements of each answer by the judge.
    REPEATS = "repeats"


@dataclass(frozen=True, slots=True)
class SpendingAdvice:
    """Share of the variance of a mean that each resource could remove; the shares sum to 1.

    Doubling a resource removes half of its share. ``first`` is the largest one, ``None`` if nothing varies or is known.
    """

    shares: Mapping[SpendOption, float]
    first: SpendOption | None


def spending_advice(split: VarianceSplit) -> SpendingAdvice:
    """Split the variance of a corrected mean by the resource that reduces it.

    Each variance component is divided by the size of its sample:

    - differences between answers: the answers judged
    - leniency: the reviewers
    - the judge's error: the answers rated
    - interaction and residual: the ratings
    - the judge's noise: its scores

    This is the design study of generalizability theory (R. L. Brennan, 2001, Generalizability Theory, 4).
    An unknown component counts as 0; reports name the overlap or repeats that would reveal it."""
    variances, design = split.variances, split.design
    if not design.answers:
        return SpendingAdvice({}, None)
    ratings = design.answers * design.ratings
    contributions = {
        SpendOption.QUESTIONS: variances.get(VarianceSource.ANSWERS, 0.0) / max(design.answers, design.judged),
        SpendOption.REVIEWERS: variances.get(VarianceSource.REVIEWERS, 0.0) / max(1, design.reviewers),
        SpendOption.RATINGS: variances.get(VarianceSource.JUDGE, 0.0) / design.answers
        + (variances.get(VarianceSource.INTERACTION, 0.0) + variances.get(VarianceSource.RESIDUAL, 0.0)) / ratings,
        SpendOption.REPEATS: variances.get(VarianceSource.NOISE, 0.0) / max(1.0, design.judged * design.repeats),
    }
    total = sum(contributions.values())
    if total <= 0:
        return SpendingAdvice({}, None)
    return SpendingAdvice(
        {spend: contribution / total for spend, contribution in contributions.items()},
        max(contributions, key=lambda spend: contributions[spend]),
    )
