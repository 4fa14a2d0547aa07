"""The three kinds of strata an estimate is put together from: complete, predicted by the judge (regression), failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from review.statistics.agreement.bootstrap import clopper_pearson
from review.statistics.agreement.statistic import Array
from review.statistics.correction.frame import LEAST_STRATUM_LABELS, Component, Stratum
from review.statistics.correction.outcome import Method, Warn, t_quantile

OWN_SLOPE_LABELS = 20  # every stratum needs as many before each gets its own slope
LEAST_FREEDOM = 5  # with fewer degrees of freedom left a slope is noise
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Slopes:
    """``b`` of each stratum, in order; ``lever`` how each label's rating moves the whole estimate through the slope
    (aligned with the stratum's labels, in units of the frame's mean); ``estimated`` how many slopes there are."""

    values: tuple[float, ...]
    lever: tuple[Array, ...]
    estimated: int


def slopes(strata: Sequence[Stratum], width: float, frame: int) -> Slopes:
    """The slopes of expert on judge for the strata that are estimated (none rated completely, none failed).

    One pooled within-stratum slope ``sum a_h cov_h(y, f) / sum a_h var_h(f)`` with ``a_h`` what the stratum adds to
    the variance (W. G. Cochran, 1977, Sampling Techniques, 7.10); one stratum gives the weighted ``Cov / Var`` of
    PPI++ (A. Angelopoulos, J. Duchi, T. Zrnic, 2023, arXiv 2311.01453). Each stratum has its own where all have 20
    labels. 0 where the judge's value does not vary within strata.
    """
    none = Slopes((0.0,) * len(strata), tuple(np.zeros(one.labels) for one in strata), 0)
    if len(strata) > 1 and all(one.labels >= OWN_SLOPE_LABELS for one in strata):
        alone = [_pooled([one], width, frame) for one in strata]
        return Slopes(
            tuple(found.values[0] if found else 0.0 for found in alone),
            tuple(found.lever[0] if found else np.zeros(one.labels) for one, found in zip(strata, alone, strict=True)),
            sum(found is not None for found in alone),
        )
    if sum(one.labels for one in strata) - len(strata) - 1 < LEAST_FREEDOM:
        return none
    return _pooled(strata, width, frame) or none


def _pooled(strata: Sequence[Stratum], width: float, frame: int) -> Slopes | None:
    """One slope for all strata; ``None`` where the judge's value does not vary within them."""
    importance = [_importance(one) for one in strata]
    pull = [
        weight * one.labels / (one.labels - 1) * one.share * (one.judged - one.share @ one.judged)
        for one, weight in zip(strata, importance, strict=True)
    ]
    spread = sum(float(each @ one.judged) for one, each in zip(strata, pull, strict=True))
    if spread <= ROUNDING * sum(importance) * width**2:
        return None
    slope = sum(float(each @ one.rating) for one, each in zip(strata, pull, strict=True)) / spread
    shift = sum(one.size / frame * (float(one.judge.mean()) - float(one.share @ one.judged)) for one in strata)
    return Slopes((slope,) * len(strata), tuple(each * shift / spread for each in pull), 1)


def _importance(one: Stratum) -> float:
    """The stratum's factor in the variance of the estimate: N_h^2 (1 - n_h / N_h) / n_h, unequal weights included."""
    return one.size**2 * float(((1.0 - one.inclusion) * np.square(one.share)).sum())


@dataclass(frozen=True, slots=True)
class StratumFit:
    """One stratum's estimate ``mean_labelled(y - b f) + b mean_all(f)``: its slope b, its level (the first term), the
    residuals of its labels about that, and the slope's lever on the whole estimate."""

    stratum: Stratum
    slope: float
    level: float
    residual: Array
    lever: Array


def fit(estimated: Sequence[Stratum], width: float, frame: int) -> tuple[list[StratumFit], Slopes]:
    """Fit the strata that are neither complete nor failed; all have 2 labels at least."""
    found = slopes(estimated, width, frame)
    fits = []
    for one, slope, lever in zip(estimated, found.values, found.lever, strict=True):
        error = one.rating - slope * one.judged
        level = float(one.share @ error)
        fits.append(StratumFit(one, slope, level, error - level, lever))
    return fits, found


def fit_without_judge(one: Stratum) -> StratumFit:
    """A stratum estimated from its labels alone."""
    level = float(one.share @ one.rating)
    return StratumFit(one, 0.0, level, one.rating - level, np.zeros(one.labels))


def inflation(fits: Sequence[StratumFit], slopes_estimated: int) -> float:
    """What residual variance is multiplied by because slopes were estimated: (k - H) / (k - H - slopes)."""
    freedom = sum(one.stratum.labels for one in fits) - len(fits)
    return freedom / (freedom - slopes_estimated) if slopes_estimated else 1.0


def deviations(one: StratumFit, frame: int, inflated: float) -> tuple[Array, Array]:
    """What each label adds to the deviation of the whole estimate: for the finite population, and without its
    correction.

    The squares of the first sum to ``(N_h / N)^2 (1 - n_h / N_h) s_h^2 / n_h`` in a simple stratum without a slope;
    with one, each label counts by its full weight, directly and through the slope (the g-weights of C.-E. Sarndal,
    B. Swensson, J. Wretman, 1992, Model Assisted Survey Sampling, 6.6), which small samples need.
    """
    size = one.stratum.labels
    weight = one.stratum.size / frame * one.stratum.share + one.lever
    plain = weight * one.residual * np.sqrt(size / (size - 1) * inflated)
    return np.asarray(plain * np.sqrt(1.0 - one.stratum.inclusion)), np.asarray(plain)


EXACT_WITHIN = 1e-9


@dataclass(frozen=True, slots=True)
class Margin:
    """How far below and above the estimate the interval reaches, in units of the estimated strata's mean."""

    below: float
    above: float
    method: Method


class NotEstimable(Exception):
    """Constant ratings off a yes/no scale say nothing about how far the others may lie."""


def vary(fits: Sequence[StratumFit], width: float) -> bool:
    """Whether residuals vary, so that the variance can be used."""
    return any(np.abs(one.residual).max() > EXACT_WITHIN * width for one in fits)


def equal_everywhere(fits: Sequence[StratumFit], width: float) -> bool:
    """Whether judge and experts gave the same value on every label."""
    return all(np.abs(one.stratum.rating - one.stratum.judged).max() <= EXACT_WITHIN * width for one in fits)


def margin(fits: Sequence[StratumFit], low: float, high: float, *, yes_no: bool, confidence: float) -> Margin:
    """The margin for strata whose residuals are all zero, for values between ``low`` and ``high``.

    - Judge = expert on every label, or the experts follow the judge exactly along a line: plus and minus u x width,
      ``u = 1 - (1 - confidence) ** (1 / n_eff)``: with a larger rate of differing answers, seeing none among n_eff
      would have been rarer than 1 - confidence.
    - Constant ratings that differ from the judge: Clopper-Pearson for yes/no.

    :raises NotEstimable: for constant ratings on another scale, or between yes and no.
    """
    width = high - low
    rating = np.concatenate([one.stratum.rating for one in fits])
    constant = float(np.ptp(rating)) <= EXACT_WITHIN * width
    size = effective_size(fits)
    if equal_everywhere(fits, width) or not constant:
        reach = unseen_rate(size, confidence) * width
        return Margin(reach, reach, Method.BOUND)
    share = (float(rating[0]) - low) / width
    if not yes_no or share not in {0.0, 1.0}:
        raise NotEstimable
    least, most = clopper_pearson(share, size, confidence)
    return Margin((share - least) * width, (most - share) * width, Method.CLOPPER_PEARSON)


def unseen_rate(size: float, confidence: float) -> float:
    """The largest rate of which none is seen among ``size`` answers with probability 1 - confidence; size 60 and
    0.95 give 0.049."""
    return float(1.0 - (1.0 - confidence) ** (1.0 / size))


def effective_size(fits: Sequence[StratumFit]) -> float:
    """Kish's effective number of labels over the strata: ``(sum w)^2 / sum w^2``."""
    weight = np.concatenate([1.0 / one.stratum.inclusion for one in fits])
    return float(weight.sum() ** 2 / np.square(weight).sum())


PSEUDO_LABELS = 0.25  # at either end of the scale; chosen by simulation: docs/decisions/0013


def unseen_variance(fits: Sequence[StratumFit], component: Component) -> float:
    """The variance that answers unlike all rated ones would add to the whole estimate: that of a quarter of a label
    more at either end of the scale, ``(N_e / N / n_eff)^2 (1 - n / N) / 4 [(high - m)^2 + (m - low)^2]``, with m the
    mean of the ``N_e`` answers estimated. Next to nothing for yes and no in equal numbers, half of the variance where
    25 labels hold two off the end."""
    size = sum(one.stratum.size for one in fits)
    mean = sum(one.stratum.size * (one.level + one.slope * float(one.stratum.judge.mean())) for one in fits) / size
    mean = min(max(mean, component.low), component.high)
    weight = size / len(component.frame) / effective_size(fits)
    open_share = 1.0 - float(np.concatenate([one.stratum.inclusion for one in fits]).mean())
    ends = (component.high - mean) ** 2 + (mean - component.low) ** 2
    return PSEUDO_LABELS * weight**2 * open_share * ends


LEAST_UNIFORM = 2.0


def uniform_labels(half_width: float, spread: float, ends: float, size: int, confidence: float) -> float:
    """How many labels of a uniform draw from ``size`` answers give such a half-width without the judge, with the same
    allowances: Student's t for few labels, and the variance of answers unlike all rated ones. ``spread`` is the
    variance of the ratings, ``ends`` the sum of the squared distances of their mean from the scale's ends.

    2 at least, ``size`` at most. The half-width shrinks as labels grow, so that halving finds the number.
    """
    low, high = LEAST_UNIFORM, float(size)
    while high - low > 1e-6 * high:
        labels = (low + high) / 2.0
        unseen = PSEUDO_LABELS / labels**2 * (1.0 - labels / size) * ends
        reach = t_quantile(0.5 + confidence / 2.0, max(1.0, labels - 1.0))
        if reach * math.sqrt(spread * (1.0 / labels - 1.0 / size) + unseen) > half_width:
            low = labels
        else:
            high = labels
    return (low + high) / 2.0


@dataclass(frozen=True, slots=True)
class Piece:
    """One stratum's contribution. ``expected``: the value believed of each member, whose mean is the stratum's
    estimate; ``design`` and ``sampling``: what each label adds to the deviation of the whole estimate, with and
    without finite-population correction."""

    stratum: Stratum
    expected: Array
    design: Array
    sampling: Array


@dataclass(frozen=True, slots=True)
class Part:
    """Strata of one kind. ``below`` and ``above`` widen the interval, in units of the whole estimate; ``unseen`` is
    the variance of answers unlike the rated ones."""

    pieces: tuple[Piece, ...]
    method: Method
    freedom: int = 0
    slope: float | None = None
    below: float = 0.0
    above: float = 0.0
    unseen: float = 0.0
    warnings: tuple[Warn, ...] = ()


def complete(found: Sequence[Stratum]) -> Part:
    """Strata rated completely: every value is known."""
    pieces = (Piece(one, one.rating, np.zeros(one.labels), np.zeros(one.labels)) for one in found)
    return Part(tuple(pieces), Method.CENSUS)


def predicted(found: Sequence[Stratum], component: Component, confidence: float) -> Part:
    """Strata with the judge's values: by regression, or by a bound where the residuals do not vary.

    :raises NotEstimable: where neither says anything.
    """
    frame = len(component.frame)
    fits, slopes = fit(found, component.width, frame)
    size = sum(one.size for one in found)
    if equal_everywhere(fits, component.width):
        # The judge's own mean, which is the regression with a slope of 1 also where his labels are all alike.
        fits = [replace(one, slope=1.0, level=0.0, residual=np.zeros(one.stratum.labels)) for one in fits]
    elif vary(fits, component.width):
        return Part(
            tuple(_piece(one, frame, inflation(fits, slopes.estimated)) for one in fits),
            Method.REGRESSION if slopes.estimated else Method.MEAN_OF_LABELS,
            freedom=sum(one.labels for one in found) - len(found) - slopes.estimated,
            slope=sum(one.size * b for one, b in zip(found, slopes.values, strict=True)) / size,
            unseen=unseen_variance(fits, component),
        )
    reach = margin(fits, component.low, component.high, yes_no=component.yes_no, confidence=confidence)
    return Part(
        tuple(_piece(one, frame, 1.0) for one in fits),
        reach.method,
        slope=sum(one.stratum.size * one.slope for one in fits) / size,
        below=size / frame * reach.below,
        above=size / frame * reach.above,
    )


def failed(found: Sequence[Stratum], component: Component, stand_in: float, confidence: float) -> list[Part]:
    """Strata the judge failed on: from their labels alone, or by the scale's ends where there are fewer than 2.

    ``stand_in`` is the mean of the other strata, taken for the value of unknown answers; the interval reaches to
    what they could be at worst and best.
    """
    frame = len(component.frame)
    return [
        _scale_ends(one, component, frame, stand_in)
        if bounded_by_scale(one)
        else _labels_alone(one, component, frame, confidence)
        for one in found
    ]


def bounded_by_scale(one: Stratum) -> bool:
    """Whether the judge failed on a stratum with too few labels to estimate it: only the scale bounds it."""
    return one.failed and not one.census and one.labels < LEAST_STRATUM_LABELS


def _labels_alone(one: Stratum, component: Component, frame: int, confidence: float) -> Part:
    found = fit_without_judge(one)
    piece = _piece(found, frame, 1.0)
    if vary([found], component.width):
        unseen = unseen_variance([found], component)
        return Part((piece,), Method.MEAN_OF_LABELS, freedom=one.labels - 1, unseen=unseen)
    reach = one.size / frame * unseen_rate(one.labels, confidence) * component.width
    return Part((piece,), Method.BOUND, below=reach, above=reach)


def _scale_ends(one: Stratum, component: Component, frame: int, stand_in: float) -> Part:
    expected = np.full(one.size, stand_in)
    expected[np.isin(one.members, one.labelled)] = one.rating
    unknown = (one.size - one.labels) / frame
    return Part(
        (Piece(one, expected, np.zeros(one.labels), np.zeros(one.labels)),),
        Method.BOUND,
        below=unknown * (stand_in - component.low),
        above=unknown * (component.high - stand_in),
        warnings=(Warn.FAILED_STRATUM_BOUNDS,),
    )


def _piece(one: StratumFit, frame: int, inflated: float) -> Piece:
    design, sampling = deviations(one, frame, inflated)
    return Piece(one.stratum, one.level + one.slope * one.stratum.judge, design, sampling)
