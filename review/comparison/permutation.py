"""The paired permutation test."""

from __future__ import annotations

import numpy as np

from review.agreement.statistic import Array

EXACT_GROUPS = 14  # up to here all 2^G sign patterns are gone through
SHUFFLES = 10_000
ROUNDING = 1e-9


def permutation_p(sums: Array, seed: int = 0) -> float:
    """The two-sided p-value of the groups' summed differences under swapping the two runs within each group.

    All ``2^G`` swaps for up to 14 groups, else 10,000 seeded ones, counted with the observed one so that p is never 0
    (B. Phipson and G. K. Smyth, 2010, Stat. Appl. Genet. Mol. Biol. 9). Groups without a difference change nothing.
    """
    sums = sums[np.abs(sums) > ROUNDING]
    if not len(sums):
        return 1.0
    observed = abs(float(sums.sum())) - ROUNDING
    if len(sums) <= EXACT_GROUPS:
        patterns = (np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums))) & 1
        return float((np.abs((2.0 * patterns - 1.0) @ sums) >= observed).mean())
    random = np.random.default_rng(seed)
    hits = 0
    for _ in range(10):
        signs = random.integers(0, 2, (SHUFFLES // 10, len(sums)), dtype=np.int8) * 2.0 - 1.0
        hits += int((np.abs(signs @ sums) >= observed).sum())
    return (hits + 1) / (SHUFFLES + 1)
