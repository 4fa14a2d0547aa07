"""Two runs on the same questions: the difference, with an interval and a test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from review.agreement.statistic import Array, Indices
from review.comparison.permutation import permutation_p
from review.correction.influence import t_quantile
from review.correction.outcome import Target

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


def paired_difference(
    ours: Mapping[Hashable, float],
    baseline: Mapping[Hashable, float],
    groups: Mapping[Hashable, Hashable] | None = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedDifference | None:
    """Compare two runs question by question (key -> value); ``groups`` (key -> group) name questions that are not
    independent. ``None`` without a common question.

    The interval is t on the mean difference with the variance of the groups' sums, as many degrees of freedom as
    groups less one. A difference that is the same everywhere has no interval and no detectable difference, because
    nothing tells how it would vary.
    """
    common = [key for key in ours if key in baseline]
    if not common:
        return None
    difference = np.array([ours[key] - baseline[key] for key in common], dtype=np.float64)
    number: dict[Hashable, int] = {}
    member = [number.setdefault(groups[key] if groups else key, len(number)) for key in common]
    error = _standard_error(difference, np.array(member, dtype=np.int64), len(number))
    sums = np.bincount(member, weights=difference).astype(np.float64)
    value = float(difference.mean())
    half = None if error is None else t_quantile(0.5 + confidence / 2.0, len(number) - 1) * error
    return PairedDifference(
        value=value,
        low=None if half is None else value - half,
        high=None if half is None else value + half,
        target=Target.QUESTIONS_LIKE_THESE,
        n=len(common),
        groups=len(number),
        wins=int((difference > TIE).sum()),
        losses=int((difference < -TIE).sum()),
        ties=int((np.abs(difference) <= TIE).sum()),
        p_value=permutation_p(sums, seed) if len(number) > 1 else None,
        detectable=_detectable(error, len(number), confidence),
        only_ours=len(ours) - len(common),
        only_baseline=len(baseline) - len(common),
    )


def _standard_error(difference: Array, member: Indices, groups: int) -> float | None:
    """The cluster-robust standard error of the mean difference; ``None`` where nothing varies."""
    if groups < 2:
        return None
    sums = np.bincount(member, weights=difference - difference.mean(), minlength=groups)
    variance = float(np.square(sums).sum()) * groups / (groups - 1) / len(difference) ** 2
    return math.sqrt(variance) if variance > TIE**2 else None


def _detectable(error: float | None, groups: int, confidence: float) -> float | None:
    if error is None:
        return None
    return (t_quantile(0.5 + confidence / 2.0, groups - 1) + t_quantile(POWER, groups - 1)) * error
