"""Statistics of a judge against the experts: distances, correlations, and errors of acceptance."""

from __future__ import annotations

import numpy as np

from review.statistics.agreement.layout import ROUNDING, Confusion, Pairs
from review.statistics.agreement.statistic import Array, BatchStatistic, Indices, ratio


def bias(pairs: Pairs) -> BatchStatistic:
    """Mean of ``judge - expert`` in units of the scale; positive if the judge is more generous. Undefined without
    pairs."""
    return ratio(pairs.weight @ (pairs.judge - pairs.expert), pairs.total)


def mae(pairs: Pairs) -> BatchStatistic:
    """Mean absolute error ``|judge - expert|`` in units of the scale, from the experts' unrounded mean; 0 is best.

    Undefined without pairs."""
    return ratio(pairs.weight @ np.abs(pairs.judge - pairs.expert), pairs.total)


def rmse(pairs: Pairs) -> BatchStatistic:
    """Root of the mean of ``(judge - expert)^2`` in units of the scale; large errors weigh more than in the MAE.

    Undefined without pairs."""
    squared = ratio(pairs.weight @ np.square(pairs.judge - pairs.expert), pairs.total)
    return BatchStatistic(np.sqrt(squared.values), squared.defined)


def exact(table: Confusion) -> BatchStatistic:
    """Share of pairs with the same category, 0 to 1: ``sum_i c_ii / sum_ij c_ij``. Undefined without pairs."""
    return ratio(np.trace(table.cells, axis1=-2, axis2=-1), table.total)


def within_one(table: Confusion) -> BatchStatistic:
    """Share of pairs whose values differ by at most 1, 0 to 1. Undefined without pairs."""
    near = table.distances() <= 1.0
    return ratio(np.asarray((table.cells * near).sum(axis=(-2, -1))), table.total)


# The tables below have two categories; the second one means acceptable.


def true_positive_rate(table: Confusion) -> BatchStatistic:
    """Share of the answers acceptable to the experts that the judge accepts: ``TP / (TP + FN)``, 0 to 1.

    Undefined if the experts accepted none."""
    return ratio(table.cells[..., 1, 1], table.expert_totals[..., 1])


def true_negative_rate(table: Confusion) -> BatchStatistic:
    """Share of the answers rejected by the experts that the judge rejects: ``TN / (TN + FP)``, 0 to 1.

    Undefined if the experts rejected none."""
    return ratio(table.cells[..., 0, 0], table.expert_totals[..., 0])


def precision(table: Confusion) -> BatchStatistic:
    """Share of the answers accepted by the judge that the experts accept: ``TP / (TP + FP)``, 0 to 1.

    Undefined if the judge accepted none."""
    return ratio(table.cells[..., 1, 1], table.judge_totals[..., 1])


def f1(table: Confusion) -> BatchStatistic:
    """Harmonic mean of precision and recall, 0 to 1: ``2 TP / (2 TP + FP + FN)``.

    Undefined if neither side accepted anything."""
    return ratio(2.0 * table.cells[..., 1, 1], np.asarray(table.expert_totals[..., 1] + table.judge_totals[..., 1]))


def balanced_accuracy(table: Confusion) -> BatchStatistic:
    """Mean of the true positive and the true negative rate, 0 to 1; 0.5 is chance.

    Undefined if the experts used one class only."""
    positive, negative = true_positive_rate(table), true_negative_rate(table)
    return BatchStatistic((positive.values + negative.values) / 2.0, positive.defined & negative.defined)


def pearson(pairs: Pairs) -> BatchStatistic:
    """Linear correlation, -1 to 1: ``cov(judge, expert) / (sd(judge) sd(expert))``, weighted.

    Undefined if either side is constant. Source: K. Pearson (1895), Proc. R. Soc. 58."""
    return weighted_correlation(_scaled_to_unit(pairs.judge), _scaled_to_unit(pairs.expert), pairs.share)


def weighted_correlation(x: Array, y: Array, share: Array) -> BatchStatistic:
    """Correlation of ``x`` and ``y`` (shape (k,) or (..., k), of order of magnitude 1) under ``share`` (..., k).

    ``share`` sums to 1. Undefined if either side is nearly constant."""
    dx = x - (share * x).sum(axis=-1, keepdims=True)
    dy = y - (share * y).sum(axis=-1, keepdims=True)
    variance_x = (share * dx * dx).sum(axis=-1)
    variance_y = (share * dy * dy).sum(axis=-1)
    defined = (variance_x > ROUNDING) & (variance_y > ROUNDING)
    result = ratio((share * dx * dy).sum(axis=-1), np.where(defined, np.sqrt(variance_x * variance_y), 0.0))
    return BatchStatistic(np.clip(result.values, -1.0, 1.0), result.defined)


def _scaled_to_unit(values: Array) -> Array:
    """Values scaled to 0..1, so that one tolerance defines "nearly constant". Correlations do not change."""
    spread = float(np.ptp(values)) if len(values) else 0.0
    return (values - values.min()) / spread if spread > 0 else np.zeros(len(values))


def spearman(pairs: Pairs) -> BatchStatistic:
    """Pearson correlation of the ranks, -1 to 1; tied values share their middle rank.

    With weights, the rank of a value is the weight below it plus half its own. For weights of 1 this is the middle rank
    minus one half. Undefined if either side is constant. Source: C. Spearman (1904), Am. J. Psychol. 15."""
    share = pairs.share
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


def kendall_tau_b(pairs: Pairs) -> BatchStatistic:
    """Rank correlation from concordant minus discordant pairs of answers, -1 to 1, corrected for ties.

    ``tau_b = (C - D) / sqrt(T_judge T_expert)``, with T the weight of pairs not tied on that side and ``w_i w_j`` the
    weight of a pair. Undefined if either side is constant. Source: M. G. Kendall (1945), Biometrika 33.

    Pairs are counted by the binary digits of the ranks of the side with fewer values, in ``O(k log k)`` per batch
    member."""
    if not len(pairs.judge):
        return ratio(pairs.total, pairs.total)
    share = pairs.share
    judge, expert = (np.unique(side, return_inverse=True)[1] for side in (pairs.judge, pairs.expert))
    untied_judge, untied_expert = _untied_weight(judge, share), _untied_weight(expert, share)
    defined = (untied_judge > ROUNDING) & (untied_expert > ROUNDING)
    coarse, fine = (judge, expert) if judge.max() <= expert.max() else (expert, judge)
    result = ratio(_net_concordance(coarse, fine, share), np.sqrt(np.where(defined, untied_judge * untied_expert, 0.0)))
    return BatchStatistic(np.clip(result.values, -1.0, 1.0), result.defined)


def _untied_weight(ranks: Indices, share: Array) -> Array:
    """Weight of the unordered pairs with different ranks, for a total weight of 1: ``(1 - sum of squared masses) /
    2``."""
    order = np.argsort(ranks, kind="stable")
    starts = np.searchsorted(ranks[order], np.arange(int(ranks.max()) + 1))
    mass = np.add.reduceat(share[..., order], starts, axis=-1)
    return np.asarray((np.square(share.sum(axis=-1)) - np.square(mass).sum(axis=-1)) / 2.0)


def _net_concordance(coarse: Indices, fine: Indices, share: Array) -> Array:
    """Weight of concordant minus discordant pairs.

    Two different ranks share all binary digits above exactly one digit, in which the smaller has 0 and the larger 1.
    Each digit is one pass: within a block of equal higher digits, every member with a 1 is paired with all that have a
    0."""
    net = np.zeros(share.shape[:-1])
    for digit in range(int(coarse.max()).bit_length()):
        block = coarse >> (digit + 1)
        order = np.lexsort((fine, block))
        upper = ((coarse[order] >> digit) & 1).astype(bool)
        weight = share[..., order]
        below = np.zeros((*share.shape[:-1], len(order) + 1))
        np.cumsum(np.where(upper, 0.0, weight), axis=-1, out=below[..., 1:])
        block_start, block_end = _run_bounds(block[order])
        tie_start, tie_end = _run_bounds(block[order] * (int(fine.max()) + 1) + fine[order])
        lower_rank, not_higher = below[..., tie_start[upper]], below[..., tie_end[upper]]
        first, last = below[..., block_start[upper]], below[..., block_end[upper]]
        net += (weight[..., upper] * (lower_rank + not_higher - first - last)).sum(axis=-1)
    return net


def _run_bounds(keys: Indices) -> tuple[Indices, Indices]:
    """Start and end (exclusive) of the run of equal keys at each position of sorted keys."""
    return np.searchsorted(keys, keys, side="left"), np.searchsorted(keys, keys, side="right")
