"""Kendall's tau-b."""

from __future__ import annotations

import numpy as np

from review.agreement.pairs import ROUNDING, Pairs
from review.agreement.statistic import Array, Figures, Indices, ratio


def kendall_tau_b(pairs: Pairs) -> Figures:
    """Concordant less discordant pairs of answers, -1 to 1, corrected for ties, each pair weighted ``w_i w_j``:

    ``tau_b = (C - D) / sqrt(T_judge T_expert)``, T being the weight of pairs not tied on that side.
    Source: M. G. Kendall (1945), Biometrika 33. Pairs are not enumerated: they are counted level by level of the
    binary digits of the ranks of the side with fewer values, in ``O(k log k)`` for every member of the batch.
    """
    if not len(pairs.judge):
        return ratio(pairs.total, pairs.total)
    total = pairs.total
    share = pairs.weight / np.where(total > 0, total, 1.0)[..., None]
    judge, expert = (np.unique(side, return_inverse=True)[1] for side in (pairs.judge, pairs.expert))
    untied_judge, untied_expert = _untied(judge, share), _untied(expert, share)
    defined = (untied_judge > ROUNDING) & (untied_expert > ROUNDING)
    coarse, fine = (judge, expert) if judge.max() <= expert.max() else (expert, judge)
    result = ratio(_concordance(coarse, fine, share), np.sqrt(np.where(defined, untied_judge * untied_expert, 0.0)))
    return Figures(np.clip(result.values, -1.0, 1.0), result.defined)


def _untied(ranks: Indices, share: Array) -> Array:
    """Weight of the unordered pairs whose ranks differ: ``(1 - sum of squared masses) / 2``, with total weight 1."""
    order = np.argsort(ranks, kind="stable")
    starts = np.searchsorted(ranks[order], np.arange(int(ranks.max()) + 1))
    mass = np.add.reduceat(share[..., order], starts, axis=-1)
    return np.asarray((np.square(share.sum(axis=-1)) - np.square(mass).sum(axis=-1)) / 2.0)


def _concordance(coarse: Indices, fine: Indices, share: Array) -> Array:
    """Weight of concordant less discordant pairs.

    Two different ranks share all binary digits above exactly one digit, where the smaller has 0 and the larger 1.
    So each digit is one pass: within a block of equal higher digits, every member with a 1 meets all with a 0.
    """
    net = np.zeros(share.shape[:-1])
    for digit in range(int(coarse.max()).bit_length()):
        block = coarse >> (digit + 1)
        order = np.lexsort((fine, block))
        upper = ((coarse[order] >> digit) & 1).astype(bool)
        weight = share[..., order]
        below = np.zeros((*share.shape[:-1], len(order) + 1))
        np.cumsum(np.where(upper, 0.0, weight), axis=-1, out=below[..., 1:])
        block_start, block_end = _runs(block[order])
        tie_start, tie_end = _runs(block[order] * (int(fine.max()) + 1) + fine[order])
        lower_rank, not_higher = below[..., tie_start[upper]], below[..., tie_end[upper]]
        first, last = below[..., block_start[upper]], below[..., block_end[upper]]
        net += (weight[..., upper] * (lower_rank + not_higher - first - last)).sum(axis=-1)
    return net


def _runs(keys: Indices) -> tuple[Indices, Indices]:
    """For each position of sorted keys, where the run of its key starts and where it ends (exclusive)."""
    return np.searchsorted(keys, keys, side="left"), np.searchsorted(keys, keys, side="right")
