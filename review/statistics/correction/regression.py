"""The regression's slope: how much of a difference in the judge's value to believe.

The stratified regression estimator, with influence values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array
from review.statistics.correction.strata import Stratum

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
