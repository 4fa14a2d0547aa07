"""Chance-corrected agreement: the kappas of Cohen and Fleiss, Gwet's AC1 and AC2, Krippendorff's alpha."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.layout import ROUNDING, Confusion
from review.statistics.agreement.statistic import Array, Figures, one_minus, ratio


def cohen_kappa(table: Confusion) -> Figures:
    """Agreement beyond chance, at most 1, 0 as by chance: ``1 - sum d_ij c_ij / sum d_ij e_ij`` with ``d_ij`` = 1 off
    the diagonal and ``e`` the product of both sides' totals over the total weight. Undefined where both sides used
    one and the same category only. Source: J. Cohen (1960), Educ. Psychol. Meas. 20.
    """
    return _kappa(table, 1.0 - np.eye(len(table.values)))


def cohen_kappa_linear(table: Confusion) -> Figures:
    """Kappa with disagreement weighed by the distance of the values, ``d_ij = |v_i - v_j|``.

    Source: J. Cohen (1968), Psychol. Bull. 70.
    """
    return _kappa(table, table.distances())


def cohen_kappa_quadratic(table: Confusion) -> Figures:
    """Kappa with disagreement weighed by the squared distance of the values, ``d_ij = (v_i - v_j)^2``.

    Source: J. Cohen (1968), Psychol. Bull. 70.
    """
    return _kappa(table, np.square(table.distances()))


def _kappa(table: Confusion, disagreement: Array) -> Figures:
    total = table.total
    observed = (table.cells * disagreement).sum(axis=(-2, -1)) * total
    expected = np.einsum("...i,ij,...j->...", table.expert_totals, disagreement, table.judge_totals)
    return one_minus(ratio(observed, expected))


@dataclass(frozen=True, slots=True)
class Coincidences:
    """Pairable values by category, for a batch of weightings.

    ``counts[..., k, l]``: coincidences, every unit with m ratings entering with weight m (Krippendorff).
    ``shares[..., k, l]``: share of rating pairs, every unit with 2 or more ratings entering equally; sums to 1.
    ``prevalence[..., k]``: mean share of a category over all units with a rating.
    """

    counts: Array
    shares: Array
    prevalence: Array
    values: Array

    @property
    def pairable(self) -> Array:
        """Weight of the units that have at least two ratings, as a flag-like total with the batch's shape."""
        return np.asarray(self.counts.sum(axis=(-2, -1)))

    def distances(self) -> Array:
        """Absolute differences of the categories' values."""
        return np.asarray(np.abs(self.values[:, None] - self.values[None, :]))


def of_pair(table: Confusion) -> Coincidences:
    """The coincidences of one judge and one (mean) expert: every unit has exactly two ratings."""
    counts = table.cells + np.swapaxes(table.cells, -2, -1)
    shares = counts / _nonzero(counts.sum(axis=(-2, -1)))[..., None, None]
    return Coincidences(counts, shares, shares.sum(axis=-1), table.values)


def of_units(ratings: Array, weight: Array, values: Array) -> Coincidences:
    """The coincidences of units; ``ratings[u, k]`` counts the raters who gave unit u category k, ``weight`` has
    shape (..., units)."""
    size = ratings.shape[1]
    raters = ratings.sum(axis=1)
    ordered = ratings[:, :, None] * ratings[:, None, :] - ratings[:, :, None] * np.eye(size)
    ordered = ordered.reshape(len(ratings), size * size)
    several = (raters >= 2).astype(np.float64)
    per_value = several / np.where(raters >= 2, raters - 1, 1)
    per_pair = several / np.where(raters >= 2, raters * (raters - 1), 1)
    batch = (*weight.shape[:-1], size, size)
    counts = (weight @ (ordered * per_value[:, None])).reshape(batch)
    shares = (weight @ (ordered * per_pair[:, None])).reshape(batch) / _nonzero(weight @ several)[..., None, None]
    rated = (raters > 0).astype(np.float64)
    mix = ratings / np.where(raters > 0, raters, 1)[:, None]
    return Coincidences(counts, shares, (weight @ mix) / _nonzero(weight @ rated)[..., None], values)


def _nonzero(total: Array) -> Array:
    return np.asarray(np.where(total > 0, total, 1.0))


def fleiss_kappa(table: Coincidences) -> Figures:
    """``(p_a - p_e) / (1 - p_e)`` with ``p_e = sum_k pi_k^2``, at most 1, 0 as by chance; gaps as in Gwet (2014).

    Undefined where only one category was used. Source: J. L. Fleiss (1971), Psychol. Bull. 76.
    """
    observed = np.trace(table.shares, axis1=-2, axis2=-1)
    expected = np.square(table.prevalence).sum(axis=-1)
    several = (table.prevalence > 0).sum(axis=-1) > 1
    return ratio(observed - expected, np.where((table.pairable > 0) & several, 1.0 - expected, 0.0))


def gwet_ac1(table: Coincidences) -> Figures:
    """AC1, at most 1, 0 as by chance; every disagreement counts alike. See :func:`_ac`."""
    return _ac(table, np.eye(len(table.values)))


def gwet_ac2(table: Coincidences) -> Figures:
    """AC2 with quadratic weights ``1 - (v_k - v_l)^2 / (v_max - v_min)^2`` over the declared scale. See :func:`_ac`."""
    return _ac(table, 1.0 - np.square(table.distances() / np.ptp(table.values)))


def _ac(table: Coincidences, agreement: Array) -> Figures:
    """``(p_a - p_e) / (1 - p_e)`` with ``p_a`` the weighted share of agreeing rating pairs and ``p_e = T / (q (q - 1))
    sum_k pi_k (1 - pi_k)``, T being the sum of the weights and q the number of declared categories.

    Source: K. L. Gwet (2014), Handbook of Inter-Rater Reliability, 4th edition, chapters 4 and 5.
    """
    size = len(table.values)
    observed = (table.shares * agreement).sum(axis=(-2, -1))
    spread = (table.prevalence * (1.0 - table.prevalence)).sum(axis=-1)
    expected = agreement.sum() / (size * (size - 1)) * spread
    return ratio(observed - expected, np.where(table.pairable > 0, 1.0 - expected, 0.0))


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
