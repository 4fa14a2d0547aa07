"""Parts of an estimate: strata rated completely, strata predicted by the judge (regression), and strata where it
failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from review.statistics.agreement.bootstrap import clopper_pearson
from review.statistics.agreement.statistic import Array
from review.statistics.correction.frame import MIN_STRATUM_LABELS, Component, Stratum
from review.statistics.correction.outcome import EstimateWarning, Method
from review.statistics.student_t import t_quantile

# Each stratum gets its own slope only if every stratum has this many labels.
MIN_OWN_SLOPE_LABELS = 20
# A slope with fewer degrees of freedom is noise.
MIN_FREEDOM = 5
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Slopes:
    """Slope of each stratum, in order.

    ``lever`` is the effect of each label's rating on the whole estimate through the slope, in units of the frame's
    mean, aligned with the stratum's labels. ``estimated`` counts the slopes."""

    values: tuple[float, ...]
    lever: tuple[Array, ...]
    estimated: int


def slopes(strata: Sequence[Stratum], width: float, frame: int) -> Slopes:
    """Estimate the slopes of expert on judge for strata that are neither complete nor failed.

    One slope is pooled within strata, ``sum a_h cov_h(y, f) / sum a_h var_h(f)``, with ``a_h`` the stratum's
    contribution to the variance (W. G. Cochran, 1977, Sampling Techniques, 7.10). A single stratum gives the weighted
    ``Cov / Var`` of PPI++ (A. Angelopoulos, J. Duchi, T. Zrnic, 2023, arXiv 2311.01453). If all strata have 20 labels,
    each gets its own slope. The slope is 0 if the judge's value does not vary within strata."""
    no_slopes = Slopes((0.0,) * len(strata), tuple(np.zeros(stratum.labels) for stratum in strata), 0)
    if len(strata) > 1 and all(stratum.labels >= MIN_OWN_SLOPE_LABELS for stratum in strata):
        own_slopes = [_pooled_slope([stratum], width, frame) for stratum in strata]
        return Slopes(
            tuple(estimate.values[0] if estimate else 0.0 for estimate in own_slopes),
            tuple(
                estimate.lever[0] if estimate else np.zeros(stratum.labels)
                for stratum, estimate in zip(strata, own_slopes, strict=True)
            ),
            sum(estimate is not None for estimate in own_slopes),
        )
    if sum(stratum.labels for stratum in strata) - len(strata) - 1 < MIN_FREEDOM:
        return no_slopes
    return _pooled_slope(strata, width, frame) or no_slopes


def _pooled_slope(strata: Sequence[Stratum], width: float, frame: int) -> Slopes | None:
    """One slope for all strata; ``None`` if the judge's value does not vary within them."""
    importance = [_variance_weight(stratum) for stratum in strata]
    pull = [
        weight
        * stratum.labels
        / (stratum.labels - 1)
        * stratum.share
        * (stratum.judged - stratum.share @ stratum.judged)
        for stratum, weight in zip(strata, importance, strict=True)
    ]
    spread = sum(float(label_pull @ stratum.judged) for stratum, label_pull in zip(strata, pull, strict=True))
    if spread <= ROUNDING * sum(importance) * width**2:
        return None
    slope = sum(float(label_pull @ stratum.rating) for stratum, label_pull in zip(strata, pull, strict=True)) / spread
    shift = sum(
        stratum.size / frame * (float(stratum.judge.mean()) - float(stratum.share @ stratum.judged))
        for stratum in strata
    )
    return Slopes((slope,) * len(strata), tuple(label_pull * shift / spread for label_pull in pull), 1)


def _variance_weight(stratum: Stratum) -> float:
    """Factor of the stratum in the variance of the estimate: N_h^2 (1 - n_h / N_h) / n_h, generalised to unequal
    weights."""
    return stratum.size**2 * float(((1.0 - stratum.inclusion) * np.square(stratum.share)).sum())


@dataclass(frozen=True, slots=True)
class StratumFit:
    """Estimate of a stratum, ``mean_labelled(y - b f) + b mean_all(f)``.

    ``slope`` is b, ``level`` the first term, ``residual`` the residuals of the labels, and ``lever`` the slope's effect
    on the whole estimate."""

    stratum: Stratum
    slope: float
    level: float
    residual: Array
    lever: Array


def fit_strata(
    estimated: Sequence[Stratum], width: float, frame: int, slope: float | None = None
) -> tuple[list[StratumFit], Slopes]:
    """Fit strata that are neither complete nor failed; each has at least 2 labels.

    A given ``slope`` is used as it is and costs no degree of freedom."""
    estimates = slopes(estimated, width, frame) if slope is None else _known_slope(estimated, slope)
    fits = []
    for stratum, stratum_slope, lever in zip(estimated, estimates.values, estimates.lever, strict=True):
        error = stratum.rating - stratum_slope * stratum.judged
        level = float(stratum.share @ error)
        fits.append(StratumFit(stratum, stratum_slope, level, error - level, lever))
    return fits, estimates


def _known_slope(strata: Sequence[Stratum], slope: float) -> Slopes:
    return Slopes((slope,) * len(strata), tuple(np.zeros(stratum.labels) for stratum in strata), 0)


def fit_without_judge(stratum: Stratum) -> StratumFit:
    """Fit a stratum from its labels alone."""
    level = float(stratum.share @ stratum.rating)
    return StratumFit(stratum, 0.0, level, stratum.rating - level, np.zeros(stratum.labels))


def inflation(fits: Sequence[StratumFit], slopes_estimated: int) -> float:
    """Factor on the residual variance for estimated slopes: (k - H) / (k - H - slopes)."""
    freedom = sum(stratum_fit.stratum.labels for stratum_fit in fits) - len(fits)
    return freedom / (freedom - slopes_estimated) if slopes_estimated else 1.0


def label_deviations(stratum_fit: StratumFit, frame: int, inflated: float) -> tuple[Array, Array]:
    """Contribution of each label to the deviation of the whole estimate, with and without finite-population correction.

    In a simple stratum without a slope the squares of the first sum to ``(N_h / N)^2 (1 - n_h / N_h) s_h^2 / n_h``.
    With a slope, each label has its full weight, directly and through the slope (the g-weights of C.-E. Sarndal, B.
    Swensson, J. Wretman, 1992, Model Assisted Survey Sampling, 6.6), which small samples need."""
    size = stratum_fit.stratum.labels
    weight = stratum_fit.stratum.size / frame * stratum_fit.stratum.share + stratum_fit.lever
    sampling = weight * stratum_fit.residual * np.sqrt(size / (size - 1) * inflated)
    return np.asarray(sampling * np.sqrt(1.0 - stratum_fit.stratum.inclusion)), np.asarray(sampling)


EQUAL_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Margin:
    """Distance of the interval's ends below and above the estimate, in units of the estimated strata's mean."""

    below: float
    above: float
    method: Method


class NotEstimable(Exception):
    """Raised for constant ratings off a yes/no scale, which give no limit for the other answers."""


def residuals_vary(fits: Sequence[StratumFit], width: float) -> bool:
    """Return whether residuals vary, so that the variance can be used."""
    return any(np.abs(stratum_fit.residual).max() > EQUAL_TOLERANCE * width for stratum_fit in fits)


def judge_equals_experts(fits: Sequence[StratumFit], width: float) -> bool:
    """Return whether judge and experts gave the same value on every label."""
    return all(
        np.abs(stratum_fit.stratum.rating - stratum_fit.stratum.judged).max() <= EQUAL_TOLERANCE * width
        for stratum_fit in fits
    )


def margin(fits: Sequence[StratumFit], low: float, high: float, *, yes_no: bool, confidence: float) -> Margin:
    """Margin for strata whose residuals are all zero, with values between ``low`` and ``high``.

    - If the judge equals the expert on every label, or the experts follow the judge along a line: plus and minus u x
      width,
      ``u = 1 - (1 - confidence) ** (1 / n_eff)``. With a larger rate of differing answers, the chance of seeing none
      among
      n_eff would be below 1 - confidence.
    - If ratings are constant and differ from the judge: Clopper-Pearson for yes/no.

    :raises NotEstimable: for constant ratings on another scale, or between yes and no."""
    width = high - low
    rating = np.concatenate([stratum_fit.stratum.rating for stratum_fit in fits])
    constant = float(np.ptp(rating)) <= EQUAL_TOLERANCE * width
    size = effective_size(fits)
    if judge_equals_experts(fits, width) or not constant:
        half_width = unseen_rate(size, confidence) * width
        return Margin(half_width, half_width, Method.BOUND)
    share = (float(rating[0]) - low) / width
    if not yes_no or share not in {0.0, 1.0}:
        raise NotEstimable
    lower, upper = clopper_pearson(share, size, confidence)
    return Margin((share - lower) * width, (upper - share) * width, Method.CLOPPER_PEARSON)


def unseen_rate(size: float, confidence: float) -> float:
    """Largest rate of which none is seen among ``size`` answers with probability 1 - confidence.

    Size 60 and 0.95 give 0.049."""
    return float(1.0 - (1.0 - confidence) ** (1.0 / size))


def effective_size(fits: Sequence[StratumFit]) -> float:
    """Kish's effective number of labels over the strata: ``(sum w)^2 / sum w^2``."""
    weight = np.concatenate([1.0 / stratum_fit.stratum.inclusion for stratum_fit in fits])
    return float(weight.sum() ** 2 / np.square(weight).sum())


# Weight at either end of the scale, chosen by simulation: docs/decisions/0013.
PSEUDO_LABELS = 0.25


def unseen_variance(fits: Sequence[StratumFit], component: Component) -> float:
    """Variance that answers unlike all rated ones would add to the whole estimate.

    It is that of a quarter of a label at either end of the scale: ``(N_e / N / n_eff)^2 (1 - n / N) / 4 [(high - m)^2 +
    (m - low)^2]``, with m the mean of the ``N_e`` estimated answers. It is negligible for yes and no in equal numbers,
    and half of the variance if 2 of 25 labels are off the end."""
    size = sum(stratum_fit.stratum.size for stratum_fit in fits)
    mean = (
        sum(
            stratum_fit.stratum.size * (stratum_fit.level + stratum_fit.slope * float(stratum_fit.stratum.judge.mean()))
            for stratum_fit in fits
        )
        / size
    )
    mean = min(max(mean, component.low), component.high)
    weight = size / len(component.frame) / effective_size(fits)
    unrated_share = 1.0 - float(np.concatenate([stratum_fit.stratum.inclusion for stratum_fit in fits]).mean())
    squared_distances = (component.high - mean) ** 2 + (mean - component.low) ** 2
    return PSEUDO_LABELS * weight**2 * unrated_share * squared_distances


MIN_UNIFORM_LABELS = 2.0


def uniform_labels(half_width: float, spread: float, squared_distances: float, size: int, confidence: float) -> float:
    """Number of labels of a uniform draw from ``size`` answers that gives this half-width without the judge.

    The allowances are those of the estimate: Student's t for few labels, and the variance of unseen answers. ``spread``
    is the variance of the ratings; ``squared_distances`` is the sum of the squared distances of their mean from the
    scale ends.

    The result lies between 2 and ``size``. It is found by bisection, because the half-width falls as labels grow."""
    low, high = MIN_UNIFORM_LABELS, float(size)
    while high - low > 1e-6 * high:
        labels = (low + high) / 2.0
        unseen = PSEUDO_LABELS / labels**2 * (1.0 - labels / size) * squared_distances
        quantile = t_quantile(0.5 + confidence / 2.0, max(1.0, labels - 1.0))
        if quantile * math.sqrt(spread * (1.0 / labels - 1.0 / size) + unseen) > half_width:
            low = labels
        else:
            high = labels
    return (low + high) / 2.0


@dataclass(frozen=True, slots=True)
class StratumContribution:
    """Contribution of one stratum.

    ``expected`` is the estimated value of each member; its mean is the stratum's estimate. ``design`` and ``sampling``
    are the contributions of each label to the deviation of the whole estimate, with and without finite-population
    correction."""

    stratum: Stratum
    expected: Array
    design: Array
    sampling: Array


@dataclass(frozen=True, slots=True)
class EstimatePart:
    """Estimate of strata of one kind.

    ``below`` and ``above`` widen the interval, in units of the whole estimate. ``unseen`` is the variance of answers
    unlike the rated ones."""

    pieces: tuple[StratumContribution, ...]
    method: Method
    freedom: int = 0
    slope: float | None = None
    below: float = 0.0
    above: float = 0.0
    unseen: float = 0.0
    warnings: tuple[EstimateWarning, ...] = ()


def census_part(strata: Sequence[Stratum]) -> EstimatePart:
    """Part of the strata that are rated completely, so that every value is known."""
    pieces = (
        StratumContribution(stratum, stratum.rating, np.zeros(stratum.labels), np.zeros(stratum.labels))
        for stratum in strata
    )
    return EstimatePart(tuple(pieces), Method.CENSUS)


def regression_part(strata: Sequence[Stratum], component: Component, confidence: float) -> EstimatePart:
    """Part of the strata with judge values: by regression, or by a bound if the residuals do not vary.

    :raises NotEstimable: if neither applies."""
    frame = len(component.frame)
    fits, slopes = fit_strata(strata, component.width, frame, component.slope)
    size = sum(stratum.size for stratum in strata)
    if judge_equals_experts(fits, component.width):
        # The judge's own mean is the regression with a slope of 1, also if its labels are all equal.
        fits = [
            replace(stratum_fit, slope=1.0, level=0.0, residual=np.zeros(stratum_fit.stratum.labels))
            for stratum_fit in fits
        ]
    elif residuals_vary(fits, component.width):
        return EstimatePart(
            tuple(_contribution(stratum_fit, frame, inflation(fits, slopes.estimated)) for stratum_fit in fits),
            Method.REGRESSION if slopes.estimated or component.slope else Method.MEAN_OF_LABELS,
            freedom=sum(stratum.labels for stratum in strata) - len(strata) - slopes.estimated,
            slope=sum(stratum.size * slope for stratum, slope in zip(strata, slopes.values, strict=True)) / size,
            unseen=unseen_variance(fits, component),
        )
    bound = margin(fits, component.low, component.high, yes_no=component.yes_no, confidence=confidence)
    return EstimatePart(
        tuple(_contribution(stratum_fit, frame, 1.0) for stratum_fit in fits),
        bound.method,
        slope=sum(stratum_fit.stratum.size * stratum_fit.slope for stratum_fit in fits) / size,
        below=size / frame * bound.below,
        above=size / frame * bound.above,
    )


def failed_parts(
    strata: Sequence[Stratum], component: Component, fallback_mean: float, confidence: float
) -> list[EstimatePart]:
    """Parts of the strata where the judge failed: from labels alone, or from the scale's ends with fewer than 2 labels.

    ``fallback_mean``, the mean of the other strata, replaces unknown values; the interval covers their worst and best
    values."""
    frame = len(component.frame)
    return [
        _scale_bounds_part(stratum, component, frame, fallback_mean)
        if is_bounded_by_scale(stratum)
        else _labels_only_part(stratum, component, frame, confidence)
        for stratum in strata
    ]


def is_bounded_by_scale(stratum: Stratum) -> bool:
    """Return whether a stratum where the judge failed has too few labels, so that only the scale bounds it."""
    return stratum.judge_failed and not stratum.census and stratum.labels < MIN_STRATUM_LABELS


def _labels_only_part(stratum: Stratum, component: Component, frame: int, confidence: float) -> EstimatePart:
    stratum_fit = fit_without_judge(stratum)
    contribution = _contribution(stratum_fit, frame, 1.0)
    if residuals_vary([stratum_fit], component.width):
        unseen = unseen_variance([stratum_fit], component)
        return EstimatePart((contribution,), Method.MEAN_OF_LABELS, freedom=stratum.labels - 1, unseen=unseen)
    half_width = stratum.size / frame * unseen_rate(stratum.labels, confidence) * component.width
    return EstimatePart((contribution,), Method.BOUND, below=half_width, above=half_width)


def _scale_bounds_part(stratum: Stratum, component: Component, frame: int, fallback_mean: float) -> EstimatePart:
    expected = np.full(stratum.size, fallback_mean)
    expected[np.isin(stratum.members, stratum.labelled)] = stratum.rating
    unknown_share = (stratum.size - stratum.labels) / frame
    return EstimatePart(
        (StratumContribution(stratum, expected, np.zeros(stratum.labels), np.zeros(stratum.labels)),),
        Method.BOUND,
        below=unknown_share * (fallback_mean - component.low),
        above=unknown_share * (component.high - fallback_mean),
        warnings=(EstimateWarning.FAILED_STRATUM_BOUNDS,),
    )


def _contribution(stratum_fit: StratumFit, frame: int, inflated: float) -> StratumContribution:
    design, sampling = label_deviations(stratum_fit, frame, inflated)
    return StratumContribution(
        stratum_fit.stratum, stratum_fit.level + stratum_fit.slope * stratum_fit.stratum.judge, design, sampling
    )
