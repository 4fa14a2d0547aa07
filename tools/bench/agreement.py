"""Agreement with intervals, compared with a loop over scikit-learn: 10,000 answers x 5 metrics x 2,000 resamples.

All figures of the product are computed: all statistics of a judge and of three experts among themselves, pairs and
ceiling. The loop computes three kappas of one metric for a part of the resamples; its time is scaled up. Both run in
one process, so that the ratio holds on a noisy machine."""

from __future__ import annotations

import time

import numpy as np
from sklearn.metrics import cohen_kappa_score

from evaluation.core.scales import Scale
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.experts import compare_experts
from review.statistics.agreement.pair import compare
from review.statistics.agreement.statistic import Rating

ANSWERS, METRICS, RESAMPLES, LOOPED = 10_000, 5, 2000, 20
LEVELS = Scale.parse("1..5")


def main() -> None:
    """Print the times and their ratio."""
    random = np.random.default_rng(0)
    experts = np.clip(random.integers(1, 6, ANSWERS) + random.integers(-1, 2, (3, ANSWERS)), 1, 5)
    judge = np.clip(experts[0] + random.integers(-1, 2, ANSWERS), 1, 5)
    groups = (np.arange(ANSWERS) // 2).tolist()
    judge_seconds = sum(_judge(judge, experts, groups) for _ in range(METRICS))
    expert_seconds = sum(_experts(judge, experts, groups) for _ in range(METRICS))
    loop = _loop(judge, experts[0], random)
    print(f"agreement: {ANSWERS} answers x {METRICS} metrics x {RESAMPLES} resamples")
    print(
        f"judge against experts, 16 statistics: {judge_seconds:.2f} s; experts, pairs and ceiling: "
        f"{expert_seconds:.2f} s"
    )
    print(f"scikit-learn in a loop, 3 kappas of one metric: {loop:.1f} s; of all metrics: {METRICS * loop:.0f} s")
    print(f"ratio for the judge, 16 statistics against 3: {METRICS * loop / judge_seconds:.0f}")


def _judge(judge: np.ndarray, experts: np.ndarray, groups: list[int]) -> float:
    start = time.process_time()
    compare(judge.tolist(), experts.mean(axis=0).tolist(), LEVELS, resampling=Resampling(RESAMPLES, groups=groups))
    return time.process_time() - start


def _experts(judge: np.ndarray, experts: np.ndarray, groups: list[int]) -> float:
    ratings = [
        Rating(answer, f"e{rater}", float(row[answer]))
        for rater, row in enumerate(experts)
        for answer in range(ANSWERS)
    ]
    start = time.process_time()
    compare_experts(
        ratings,
        LEVELS,
        judge=dict(enumerate(judge.astype(float).tolist())),
        groups=dict(enumerate(groups)),
        resampling=Resampling(RESAMPLES),
    )
    return time.process_time() - start


def _loop(judge: np.ndarray, expert: np.ndarray, random: np.random.Generator) -> float:
    start = time.process_time()
    for _ in range(LOOPED):
        sampled = random.integers(0, ANSWERS, ANSWERS)
        for weights in (None, "linear", "quadratic"):
            cohen_kappa_score(expert[sampled], judge[sampled], weights=weights)
    return (time.process_time() - start) * RESAMPLES / LOOPED


if __name__ == "__main__":
    main()
