"""The stratified regression estimator, with influence values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.agreement.statistic import Array
from review.correction.slope import Slopes, slopes
from review.correction.strata import Stratum


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
