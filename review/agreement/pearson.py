"""Pearson's correlation."""

from __future__ import annotations

import numpy as np

from review.agreement.pairs import ROUNDING, Pairs
from review.agreement.statistic import Array, Figures, ratio


def pearson(pairs: Pairs) -> Figures:
    """Linear correlation, -1 to 1: ``cov(judge, expert) / (sd(judge) sd(expert))``, weighted.

    Undefined where either side is constant. Source: K. Pearson (1895), Proc. R. Soc. 58.
    """
    total = pairs.total
    share = pairs.weight / np.where(total > 0, total, 1.0)[..., None]
    return weighted_correlation(_scaled(pairs.judge), _scaled(pairs.expert), share)


def weighted_correlation(x: Array, y: Array, share: Array) -> Figures:
    """Correlation of ``x`` and ``y`` (shape (k,) or (..., k), of unit order of magnitude) under ``share`` (..., k),
    which sums to 1."""
    dx = x - (share * x).sum(axis=-1, keepdims=True)
    dy = y - (share * y).sum(axis=-1, keepdims=True)
    variance_x = (share * dx * dx).sum(axis=-1)
    variance_y = (share * dy * dy).sum(axis=-1)
    defined = (variance_x > ROUNDING) & (variance_y > ROUNDING)
    result = ratio((share * dx * dy).sum(axis=-1), np.where(defined, np.sqrt(variance_x * variance_y), 0.0))
    return Figures(np.clip(result.values, -1.0, 1.0), result.defined)


def _scaled(values: Array) -> Array:
    """The values moved and stretched to 0..1, which changes no correlation and makes "nearly constant" a number."""
    spread = float(np.ptp(values)) if len(values) else 0.0
    return (values - values.min()) / spread if spread > 0 else np.zeros(len(values))
