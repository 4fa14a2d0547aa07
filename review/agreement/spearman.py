"""Spearman's rank correlation."""

from __future__ import annotations

import numpy as np

from review.agreement.pairs import Pairs
from review.agreement.pearson import weighted_correlation
from review.agreement.statistic import Array, Figures


def spearman(pairs: Pairs) -> Figures:
    """Pearson's correlation of the ranks, -1 to 1; tied values share their middle rank.

    With weights the rank of a value is the weight below it plus half its own, which for weights of 1 is the middle
    rank less one half. Source: C. Spearman (1904), Am. J. Psychol. 15.
    """
    total = pairs.total
    share = pairs.weight / np.where(total > 0, total, 1.0)[..., None]
    return weighted_correlation(_ranks(pairs.judge, share), _ranks(pairs.expert, share), share)


def _ranks(values: Array, share: Array) -> Array:
    """Middle ranks as shares of the total weight, shape (..., k)."""
    if not len(values):
        return share
    distinct, position = np.unique(values, return_inverse=True)
    order = np.argsort(position, kind="stable")
    starts = np.searchsorted(position[order], np.arange(len(distinct)))
    mass = np.add.reduceat(share[..., order], starts, axis=-1)
    middle = np.cumsum(mass, axis=-1) - mass / 2.0
    return np.asarray(middle[..., position])
