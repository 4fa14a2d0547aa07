"""Quantiles of Student's t without scipy, whose import takes longer than a small report."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_PRECISION = 1e-12
# From here on the expansion alone is as precise as rounding errors permit.
_LARGE_FREEDOM = 1e4


@lru_cache(maxsize=1024)
def t_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t; ``probability`` is between 0 and 1, ``freedom`` is at least 1.

    Begins with the expansion around the normal quantile (Abramowitz and Stegun, 26.7.5), which Newton's method
    corrects."""
    if probability < 0.5:
        return -t_quantile(1.0 - probability, freedom)
    z = NormalDist().inv_cdf(probability)
    t = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    if t == 0.0 or freedom >= _LARGE_FREEDOM:
        return t
    log_peak = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    step = math.inf
    while abs(step) > _PRECISION * max(1.0, t):
        log_density = log_peak - (freedom + 1) / 2 * math.log1p(t * t / freedom)
        total = freedom + t * t
        tail = _incomplete_beta(freedom / 2, 0.5, freedom / total, t * t / total) / 2
        step = (tail - (1.0 - probability)) / math.exp(log_density)
        t += step
    return t


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """Regularised incomplete beta function of x = 1 - y, by its continued fraction (DLMF 8.17.22) with Lentz's
    method."""
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(b, a, y, x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(y)
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1))
    fraction, change, m = d, 0.0, 0
    while abs(change - 1.0) > _PRECISION:
        m += 1
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + numerator * d)
            c = 1.0 + numerator / c
            change = c * d
            fraction *= change
    return math.exp(log_front) * fraction / a
