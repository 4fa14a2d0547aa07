"""Krippendorff's alpha, for any number of raters and with gaps."""

from __future__ import annotations

import numpy as np

from review.agreement.coincidences import Coincidences
from review.agreement.pairs import ROUNDING
from review.agreement.statistic import Array, Figures, one_minus, ratio


def krippendorff_alpha_nominal(table: Coincidences) -> Figures:
    """Alpha where all disagreements are alike; see :func:`_alpha`."""
    return _alpha(table, np.asarray(1.0 - np.eye(len(table.values))))


def krippendorff_alpha_ordinal(table: Coincidences) -> Figures:
    """Alpha where the distance of two values is the number of ratings between them: ``(sum_{g=c..k} n_g -
    (n_c + n_k) / 2)^2``; see :func:`_alpha`."""
    totals = table.counts.sum(axis=-1)
    middle = np.cumsum(totals, axis=-1) - totals / 2.0
    return _alpha(table, np.square(middle[..., :, None] - middle[..., None, :]))


def krippendorff_alpha_interval(table: Coincidences) -> Figures:
    """Alpha where the distance of two values is their squared difference; see :func:`_alpha`."""
    return _alpha(table, np.square(table.distances()))


def _alpha(table: Coincidences, distance: Array) -> Figures:
    """``alpha = 1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck`` over the pairable values, at most 1, 0 as by chance.

    Undefined where only one value was used. Under weights n is the sum of weights times ratings, the weights being
    scaled to a mean of 1. Source: K. Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    """
    totals = table.counts.sum(axis=-1)
    observed = (table.counts * distance).sum(axis=(-2, -1)) * (totals.sum(axis=-1) - 1.0)
    expected = (totals[..., :, None] * totals[..., None, :] * distance).sum(axis=(-2, -1))
    return one_minus(ratio(observed, expected))


def interval_alpha_of_reals(raters: Array, total: Array, squares: Array, weight: Array) -> Figures:
    """Interval alpha of units on a continuous scale, from each unit's number of ratings, their sum and their sum of
    squares (shape (units,)); the same figure as :func:`krippendorff_alpha_interval` without listing the values."""
    several = raters >= 2
    within = np.where(several, 2.0 * (raters * squares - total**2) / np.where(several, raters - 1, 1), 0.0)
    weight = weight * several
    size, first, second = weight @ raters, weight @ total, weight @ squares
    observed = (weight @ within) * (size - 1.0)
    expected = 2.0 * (size * second - first**2)
    return one_minus(ratio(observed, np.where(expected > ROUNDING * size * np.abs(second), expected, 0.0)))
