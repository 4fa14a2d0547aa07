"""The regression's slope: how much of a difference in the judge's value to believe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.correction.strata import Stratum

OWN_SLOPE_LABELS = 20  # every stratum needs as many before each gets its own slope
LEAST_FREEDOM = 5  # with fewer degrees of freedom left a slope is noise
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Slopes:
    """``b`` of each stratum, in order, and how many slopes were estimated."""

    values: tuple[float, ...]
    estimated: int


def slopes(strata: Sequence[Stratum], width: float) -> Slopes:
    """The slopes of expert on judge for the strata that are estimated (none rated completely, none failed).

    One pooled within-stratum slope ``sum a_h cov_h(y, f) / sum a_h var_h(f)`` with ``a_h`` what the stratum adds to
    the variance (W. G. Cochran, 1977, Sampling Techniques, 7.10); one stratum gives the weighted ``Cov / Var`` of
    PPI++ (A. Angelopoulos, J. Duchi, T. Zrnic, 2023, arXiv 2311.01453). Each stratum has its own where all have 20
    labels. 0 where the judge's value does not vary within strata.
    """
    if not strata:
        return Slopes((), 0)
    moments = [_moments(one) for one in strata]
    labels = sum(one.labels for one in strata)
    if len(strata) > 1 and all(one.labels >= OWN_SLOPE_LABELS for one in strata):
        own = tuple(cov / var if var > ROUNDING * width**2 else 0.0 for cov, var in moments)
        return Slopes(own, sum(b != 0.0 for b in own))
    spread = sum(_importance(one) * var for one, (_, var) in zip(strata, moments, strict=True))
    scale = sum(_importance(one) for one in strata) * width**2
    if spread <= ROUNDING * scale or labels - len(strata) - 1 < LEAST_FREEDOM:
        return Slopes((0.0,) * len(strata), 0)
    together = sum(_importance(one) * cov for one, (cov, _) in zip(strata, moments, strict=True))
    return Slopes((together / spread,) * len(strata), 1)


def _moments(one: Stratum) -> tuple[float, float]:
    """Weighted covariance of expert and judge, and variance of the judge, with the divisor n - 1."""
    share, size = one.share, one.labels
    judge = one.judged - share @ one.judged
    rating = one.rating - share @ one.rating
    factor = size / (size - 1)
    return float(share @ (judge * rating)) * factor, float(share @ (judge * judge)) * factor


def _importance(one: Stratum) -> float:
    """The stratum's factor in the variance of the estimate: N_h^2 (1 - n_h / N_h) / n_h, unequal weights included."""
    return one.size**2 * float(((1.0 - one.inclusion) * np.square(one.share)).sum())
