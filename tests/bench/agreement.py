"""Agreement with intervals beside a loop over scikit-learn: 10,000 answers, 2,000 resamples, all statistics.

The loop computes the three kappas only and for a part of the resamples; its time is scaled up. Both halves run in one
go, so that the ratio holds on a noisy machine.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.metrics import cohen_kappa_score

from evaluation.scales import Scale
from review.agreement.bootstrap import Resampling
from review.agreement.pair import compare

ANSWERS, RESAMPLES, LOOPED = 10_000, 2000, 20


def main() -> None:
    """Print both times and their ratio."""
    random = np.random.default_rng(0)
    expert = random.integers(1, 6, ANSWERS)
    judge = np.clip(expert + random.integers(-1, 2, ANSWERS), 1, 5)
    groups = (np.arange(ANSWERS) // 2).tolist()
    start = time.perf_counter()
    compare(judge.tolist(), expert.tolist(), Scale.parse("1..5"), resampling=Resampling(RESAMPLES, groups=groups))
    ours = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(LOOPED):
        picked = random.integers(0, ANSWERS, ANSWERS)
        for weights in (None, "linear", "quadratic"):
            cohen_kappa_score(expert[picked], judge[picked], weights=weights)
    loop = (time.perf_counter() - start) * RESAMPLES / LOOPED
    print(f"agreement: {ANSWERS} answers x {RESAMPLES} resamples, 16 statistics: {ours:.2f} s")
    print(f"scikit-learn in a loop, 3 of them: {loop:.1f} s; ratio {loop / ours:.0f}")


if __name__ == "__main__":
    main()
