"""Two runs on the same questions: the difference, with an interval and a test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from review.statistics.agreement.statistic import Array, Indices
from review.statistics.correction.influence import t_quantile
from review.statistics.correction.interval import group_freedom
from review.statistics.correction.outcome import Target
from review.statistics.paired_tests.tests import permutation_p

TIE = 1e-9
POWER = 0.8


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """This run minus the baseline, over the questions both have.

    ``low`` and ``high``: for questions like these, cluster-robust over groups; ``None`` where there are fewer than
    two groups. ``p_value``: paired permutation of groups, two-sided. ``detectable``: the smallest true difference a
    comparison of this size would find in 4 of 5 cases. ``only_ours`` and ``only_baseline`` count what was left out.
    """

    value: float
    low: float | None
    high: float | None
    target: Target
    n: int
    groups: int
    wins: int
    losses: int
    ties: int
    p_value: float | None
    detectable: float | None
    only_ours: int
    only_baseline: int

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "target": str(self.target),
            "n": self.n,
            "groups": self.groups,
            "wins": self.wins,
            "losses": self.losses,
            "ties": self.ties,
            "p_value": self.p_value,
            "detectable": self.detectable,
            "only_ours": self.only_ours,
            "only_baseline": self.only_baseline,
        }


@dataclass(frozen=True, slots=True)
class PairedPart:
    """One part of a score in both runs: question -> value, and the part's weight in the sum."""

    ours: Mapping[Any, float]
    baseline: Mapping[Any, float]
    weight: float = 1.0

    @property
    def common(self) -> list[Hashable]:
        """The questions that both runs have a value of, in the order of ours."""
        return [key for key in self.ours if key in self.baseline]


def paired_difference(
    ours: Mapping[Any, float],
    baseline: Mapping[Any, float],
    groups: Mapping[Any, Hashable] | None = None,
    *,
    limit: float = math.inf,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedDifference | None:
    """Compare two runs question by question (key -> value); ``groups`` (key -> group) name questions that are not
    independent. ``None`` without a common question.

    The interval is t on the mean difference with the variance of the groups' sums, as many degrees of freedom as
    groups less one (fewer where their sizes differ), cut at ``limit``, the largest difference the scale allows. A
    difference that is the same everywhere has no interval and no detectable difference, because nothing tells how it
    would vary.
    """
    return paired_sum([PairedPart(ours, baseline)], groups, limit=limit, confidence=confidence, seed=seed)


def paired_sum(
    parts: Sequence[PairedPart],
    groups: Mapping[Any, Hashable] | None = None,
    *,
    limit: float = math.inf,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedDifference | None:
    """Compare the sums of weight x mean of two runs, each part over the questions that both have it of: a score on run
    means, whose parts apply to different questions.

    A question adds ``sum_j w_j (d_ij - mean d_j) / n_j`` to the deviation of the sum (linearisation, W. G. Cochran,
    1977, Sampling Techniques, 6), and ``sum_j w_j d_ij / n_j`` to the sum itself: its sign tells wins and losses, and
    swapping the runs within a group changes the group's own. With one part of weight 1 this is the paired difference.
    """
    share: dict[Hashable, float] = {}
    deviation: dict[Hashable, float] = {}
    for part in parts:
        common = part.common
        difference = {key: part.ours[key] - part.baseline[key] for key in common}
        mean = math.fsum(difference.values()) / len(common) if common else 0.0
        for key, d in difference.items():
            share[key] = share.get(key, 0.0) + part.weight * d / len(common)
            deviation[key] = deviation.get(key, 0.0) + part.weight * (d - mean) / len(common)
    return _outcome(share, deviation, groups, _only(parts), limit, confidence, seed) if share else None


def _outcome(
    share: Mapping[Any, float],
    deviation: Mapping[Any, float],
    groups: Mapping[Any, Hashable] | None,
    only: tuple[int, int],
    limit: float,
    confidence: float,
    seed: int,
) -> PairedDifference:
    number: dict[Hashable, int] = {}
    member = np.array([number.setdefault(groups[k] if groups else k, len(number)) for k in share], dtype=np.int64)
    adds = np.array(list(share.values()), dtype=np.float64)
    sums = np.bincount(member, weights=adds).astype(np.float64) * len(share)
    count = len(number)
    error = _standard_error(np.array(list(deviation.values()), dtype=np.float64), member, count)
    freedom = group_freedom(np.bincount(member))
    half = None if error is None else t_quantile(0.5 + confidence / 2.0, freedom) * error
    value, tie = math.fsum(share.values()), TIE / len(share)
    return PairedDifference(
        value=value,
        low=None if half is None else max(value - half, -limit),
        high=None if half is None else min(value + half, limit),
        target=Target.QUESTIONS_LIKE_THESE,
        n=len(share),
        groups=count,
        wins=int((adds > tie).sum()),
        losses=int((adds < -tie).sum()),
        ties=int((np.abs(adds) <= tie).sum()),
        p_value=permutation_p(sums, seed) if count > 1 else None,
        detectable=_detectable(error, freedom, confidence),
        only_ours=only[0],
        only_baseline=only[1],
    )


def _only(parts: Sequence[PairedPart]) -> tuple[int, int]:
    """How many questions have a value in one run alone, for no part in both."""
    common = {key for part in parts for key in part.common}
    ours = {key for part in parts for key in part.ours} - common
    baseline = {key for part in parts for key in part.baseline} - common
    return len(ours), len(baseline)


def _standard_error(deviation: Array, member: Indices, groups: int) -> float | None:
    """The cluster-robust standard error of the difference; ``None`` where nothing varies."""
    if groups < 2:
        return None
    sums = np.bincount(member, weights=deviation, minlength=groups)
    variance = float(np.square(sums).sum()) * groups / (groups - 1)
    return math.sqrt(variance) if variance > TIE**2 else None


def _detectable(error: float | None, freedom: float, confidence: float) -> float | None:
    if error is None:
        return None
    return (t_quantile(0.5 + confidence / 2.0, freedom) + t_quantile(POWER, freedom)) * error
