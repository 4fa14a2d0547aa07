"""Chance-corrected agreement: Cohen's and Fleiss' kappa, Gwet's AC1 and AC2, Krippendorff's alpha.

All of them are 1 for perfect agreement and 0 for the agreement expected by chance. Negative values mean less agreement
than chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.layout import ROUNDING, Confusion
from review.statistics.agreement.statistic import Array, BatchStatistic, one_minus, ratio


def cohen_kappa(table: Confusion) -> BatchStatistic:
    """Cohen's kappa of two raters, at most 1: ``1 - sum d_ij c_ij / sum d_ij e_ij``.

    It compares the observed disagreement with the disagreement expected if both raters assigned categories
    independently. ``d_ij`` is 1 off the diagonal, ``c`` the table, and ``e`` the product of both sides' totals over the
    total weight. Undefined if both sides used the same single category. Source: J. Cohen (1960), Educ. Psychol. Meas.
    20."""
    return _kappa(table, 1.0 - np.eye(len(table.values)))


def cohen_kappa_linear(table: Confusion) -> BatchStatistic:
    """Cohen's kappa with disagreement weighted by the distance of the values, ``d_ij = |v_i - v_j|``.

    Near misses count in part. Source: J. Cohen (1968), Psychol. Bull. 70."""
    return _kappa(table, table.distances())


def cohen_kappa_quadratic(table: Confusion) -> BatchStatistic:
    """Cohen's kappa with disagreement weighted by the squared distance of the values, ``d_ij = (v_i - v_j)^2``.

    Far misses count most. Source: J. Cohen (1968), Psychol. Bull. 70."""
    return _kappa(table, np.square(table.distances()))


def _kappa(table: Confusion, disagreement: Array) -> BatchStatistic:
    total = table.total
    observed = (table.cells * disagreement).sum(axis=(-2, -1)) * total
    expected = np.einsum("...i,ij,...j->...", table.expert_totals, disagreement, table.judge_totals)
    return one_minus(ratio(observed, expected))


@dataclass(frozen=True, slots=True)
class Coincidences:
    """Pairs of ratings of the same unit, by category, for a batch of weightings.

    ``counts[..., k, l]``: coincidences, in which a unit with m ratings has weight m (Krippendorff). ``shares[..., k,
    l]``: share of rating pairs, in which every unit with two or more ratings has equal weight; sums to 1.
    ``prevalence[..., k]``: mean share of a category over all rated units."""

    counts: Array
    shares: Array
    prevalence: Array
    values: Array

    @property
    def pairable(self) -> Array:
        """Total of the coincidences, with the batch's shape; positive if any unit has two ratings."""
        return np.asarray(self.counts.sum(axis=(-2, -1)))

    def distances(self) -> Array:
        """Absolute differences of the categories' values."""
        return np.asarray(np.abs(self.values[:, None] - self.values[None, :]))


def pair_coincidences(table: Confusion) -> Coincidences:
    """Coincidences of one judge and one (mean) expert: every unit has exactly two ratings."""
    counts = table.cells + np.swapaxes(table.cells, -2, -1)
    shares = counts / _positive_or_one(counts.sum(axis=(-2, -1)))[..., None, None]
    return Coincidences(counts, shares, shares.sum(axis=-1), table.values)


def unit_coincidences(ratings: Array, weight: Array, values: Array) -> Coincidences:
    """Coincidences of units. ``ratings[u, k]`` counts the raters who gave unit u category k; ``weight`` has shape (...,
    units)."""
    size = ratings.shape[1]
    rater_count = ratings.sum(axis=1)
    ordered_pairs = ratings[:, :, None] * ratings[:, None, :] - ratings[:, :, None] * np.eye(size)
    ordered_pairs = ordered_pairs.reshape(len(ratings), size * size)
    has_pairs = (rater_count >= 2).astype(np.float64)
    per_value = has_pairs / np.where(rater_count >= 2, rater_count - 1, 1)
    per_pair = has_pairs / np.where(rater_count >= 2, rater_count * (rater_count - 1), 1)
    batch = (*weight.shape[:-1], size, size)
    counts = (weight @ (ordered_pairs * per_value[:, None])).reshape(batch)
    shares = (weight @ (ordered_pairs * per_pair[:, None])).reshape(batch) / _positive_or_one(weight @ has_pairs)[
        ..., None, None
    ]
    rated = (rater_count > 0).astype(np.float64)
    mix = ratings / np.where(rater_count > 0, rater_count, 1)[:, None]
    return Coincidences(counts, shares, (weight @ mix) / _positive_or_one(weight @ rated)[..., None], values)


def _positive_or_one(total: Array) -> Array:
    return np.asarray(np.where(total > 0, total, 1.0))


def fleiss_kappa(table: Coincidences) -> BatchStatistic:
    """Fleiss' kappa of several raters, at most 1: ``(p_a - p_e) / (1 - p_e)`` with ``p_e = sum_k pi_k^2``.

    ``p_a`` is the share of agreeing rating pairs, ``pi_k`` the mean share of category k. Missing ratings are handled as
    in Gwet (2014). Undefined if only one category was used. Source: J. L. Fleiss (1971), Psychol. Bull. 76."""
    observed = np.trace(table.shares, axis1=-2, axis2=-1)
    expected = np.square(table.prevalence).sum(axis=-1)
    has_categories = (table.prevalence > 0).sum(axis=-1) > 1
    return ratio(observed - expected, np.where((table.pairable > 0) & has_categories, 1.0 - expected, 0.0))


def gwet_ac1(table: Coincidences) -> BatchStatistic:
    """Gwet's AC1, at most 1, with all disagreements weighted alike; see :func:`_ac`."""
    return _ac(table, np.eye(len(table.values)))


def gwet_ac2(table: Coincidences) -> BatchStatistic:
    """Gwet's AC2 with quadratic weights ``1 - (v_k - v_l)^2 / (v_max - v_min)^2`` over the declared scale; see
    :func:`_ac`."""
    return _ac(table, 1.0 - np.square(table.distances() / np.ptp(table.values)))


def _ac(table: Coincidences, agreement: Array) -> BatchStatistic:
    """Gwet's AC: ``(p_a - p_e) / (1 - p_e)``, at most 1.

    ``p_a`` is the weighted share of agreeing rating pairs. ``p_e = T / (q (q - 1)) sum_k pi_k (1 - pi_k)``, with T the
    sum of the weights and q the number of declared categories. Unlike kappa, AC stays stable if nearly all ratings have
    one value. Undefined without an item that has two ratings.

    Source: K. L. Gwet (2014), Handbook of Inter-Rater Reliability, 4th edition, chapters 4 and 5."""
    size = len(table.values)
    observed = (table.shares * agreement).sum(axis=(-2, -1))
    spread = (table.prevalence * (1.0 - table.prevalence)).sum(axis=-1)
    expected = agreement.sum() / (size * (size - 1)) * spread
    return ratio(observed - expected, np.where(table.pairable > 0, 1.0 - expected, 0.0))


def krippendorff_alpha_nominal(table: Coincidences) -> BatchStatistic:
    """Krippendorff's alpha with equal distances between all values; see :func:`_alpha`."""
    return _alpha(table, np.asarray(1.0 - np.eye(len(table.values))))


def krippendorff_alpha_ordinal(table: Coincidences) -> BatchStatistic:
    """Krippendorff's alpha with distances by rank; see :func:`_alpha`.

    The distance of two values counts the ratings between them: ``(sum_{g=c..k} n_g - (n_c + n_k) / 2)^2``."""
    totals = table.counts.sum(axis=-1)
    middle = np.cumsum(totals, axis=-1) - totals / 2.0
    return _alpha(table, np.square(middle[..., :, None] - middle[..., None, :]))


def krippendorff_alpha_interval(table: Coincidences) -> BatchStatistic:
    """Krippendorff's alpha with squared differences of the values as distances; see :func:`_alpha`."""
    return _alpha(table, np.square(table.distances()))


def _alpha(table: Coincidences, distance: Array) -> BatchStatistic:
    """Krippendorff's alpha, at most 1: ``1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck`` over the pairable values.

    It compares the observed distance between ratings of the same item with the distance expected between any two
    ratings. Missing ratings are allowed. Undefined if only one value was used. With weights, n is the sum of weights
    times ratings, and the weights have a mean of 1. Source: K. Krippendorff (2011), Computing Krippendorff's
    alpha-reliability."""
    totals = table.counts.sum(axis=-1)
    observed = (table.counts * distance).sum(axis=(-2, -1)) * (totals.sum(axis=-1) - 1.0)
    expected = (totals[..., :, None] * totals[..., None, :] * distance).sum(axis=(-2, -1))
    return one_minus(ratio(observed, expected))


def interval_alpha_of_reals(raters: Array, total: Array, squares: Array, weight: Array) -> BatchStatistic:
    """Interval alpha on a continuous scale, from each unit's number of ratings, their sum and their sum of squares.

    All three have shape (units,). The result equals :func:`krippendorff_alpha_interval` without listing the values."""
    has_pairs = raters >= 2
    within_unit = np.where(has_pairs, 2.0 * (raters * squares - total**2) / np.where(has_pairs, raters - 1, 1), 0.0)
    weight = weight * has_pairs
    size, first, second = weight @ raters, weight @ total, weight @ squares
    observed = (weight @ within_unit) * (size - 1.0)
    expected = 2.0 * (size * second - first**2)
    return one_minus(ratio(observed, np.where(expected > ROUNDING * size * np.abs(second), expected, 0.0)))
