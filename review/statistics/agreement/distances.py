"""How far judge and expert are apart: bias, absolute and squared error, exact agreement.

Bias: does the judge give more or less than the experts?

Mean absolute error.

Root mean squared error.

Exact agreement.

Agreement within one level.
"""

from __future__ import annotations

import numpy as np

from review.statistics.agreement.pairs import Confusion, Pairs
from review.statistics.agreement.statistic import Figures, ratio


def bias(pairs: Pairs) -> Figures:
    """The mean of ``judge - expert`` in units of the scale; positive where the judge is more generous."""
    return ratio(pairs.weight @ (pairs.judge - pairs.expert), pairs.total)


def mae(pairs: Pairs) -> Figures:
    """The mean of ``|judge - expert|`` in units of the scale, with the experts' unrounded mean; 0 is best."""
    return ratio(pairs.weight @ np.abs(pairs.judge - pairs.expert), pairs.total)


def rmse(pairs: Pairs) -> Figures:
    """The root of the mean of ``(judge - expert)^2`` in units of the scale; large errors weigh more than in the MAE."""
    squared = ratio(pairs.weight @ np.square(pairs.judge - pairs.expert), pairs.total)
    return Figures(np.sqrt(squared.values), squared.defined)


def exact(table: Confusion) -> Figures:
    """The share of pairs with the same category, 0 to 1: ``sum_i c_ii / sum_ij c_ij``."""
    return ratio(np.trace(table.cells, axis1=-2, axis2=-1), table.total)


def within_one(table: Confusion) -> Figures:
    """The share of pairs whose values differ by at most 1, 0 to 1."""
    near = table.distances() <= 1.0
    return ratio(np.asarray((table.cells * near).sum(axis=(-2, -1))), table.total)
