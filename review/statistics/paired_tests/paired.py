"""Paired comparison of two runs: difference with interval and test, Holm, McNemar, and corrected scores."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from review.statistics.agreement.statistic import Array, Indices, factorize
from review.statistics.correction.corrected import corrected_overall, overall_deviation
from review.statistics.correction.frame import Component
from review.statistics.correction.outcome import CorrectionOutcome, Deviation, Target, group_freedom
from review.statistics.paired_tests.family import swapped_sums
from review.statistics.student_t import t_quantile


def corrected_difference(
    candidate: Sequence[Component],
    baseline: Sequence[Component],
    target: Target = Target.QUESTIONS_LIKE_THESE,
    confidence: float = 0.95,
) -> CorrectionOutcome:
    """Corrected score of this run minus that of the baseline.

    Answers to one question must share a group (its id if it has none), so that the difficulty of a question cancels
    out. The labels of the two runs are labels of different answers. Withheld if either score is; the names of the
    baseline's components start with ``baseline:``."""
    return corrected_overall(_signed_components(candidate, baseline), target, confidence)


def corrected_deviation(candidate: Sequence[Component], baseline: Sequence[Component]) -> Deviation | None:
    """Deviation by group of the corrected difference for questions like these; ``None`` if withheld or without
    variation."""
    return overall_deviation(_signed_components(candidate, baseline))


def _signed_components(candidate: Sequence[Component], baseline: Sequence[Component]) -> list[Component]:
    return [*_prefixed_components(candidate, "", 1.0), *_prefixed_components(baseline, "baseline:", -1.0)]


def _prefixed_components(components: Sequence[Component], prefix: str, sign: float) -> Iterator[Component]:
    """Prefix names and keys, so that the two runs share none. Frames that share a list of names still do."""
    lists_by_id = {id(component.frame.names): component.frame.names for component in components}
    prefixed_names = {list_id: [(prefix, key) for key in names] for list_id, names in lists_by_id.items()}
    for component in components:
        frame = replace(component.frame, names=prefixed_names[id(component.frame.names)])
        yield replace(component, name=prefix + component.name, frame=frame, weight=sign * component.weight)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values by Holm's method; at a level of 5%, the chance of any false finding is at most 5%.

    The smallest is multiplied by the number of tests, the next by one less, and none is below an earlier one.
    Source: S. Holm (1979), Scand. J. Stat. 6."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: (p_values[name], name))):
        highest = max(highest, min(1.0, p_values[name] * (len(p_values) - rank)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


@dataclass(frozen=True, slots=True)
class McNemar:
    """Questions that pass only in this run (``gained``) or only in the baseline (``lost``), and the p-value."""

    gained: int
    lost: int
    p_value: float


def mcnemar(gained: int, lost: int) -> McNemar:
    """Two-sided exact test that gains and losses are equally likely: ``2 P(X <= min)`` for X binomial with 1/2, at most
    1.

    Questions with equal outcomes carry no information. Questions are assumed independent. Source: Q. McNemar (1947),
    Psychometrika 12.

    :raises ValueError: for negative counts."""
    if gained < 0 or lost < 0:
        raise ValueError("counts are not negative")
    differing = gained + lost
    tail = sum(math.comb(differing, hits) for hits in range(min(gained, lost) + 1))
    return McNemar(gained, lost, min(1.0, 2 * tail / 2**differing))


# All 2^G sign patterns are enumerated for up to this many groups.
MAX_EXACT_GROUPS = 14
PERMUTATIONS = 10_000
ROUNDING = 1e-9


def permutation_p(sums: Array, seed: int = 0) -> float:
    """Two-sided p-value of the groups' summed differences under swapping the two runs within each group.

    All ``2^G`` swaps are enumerated for up to 14 groups. Otherwise 10,000 seeded swaps are drawn and counted together
    with the observed one, so that p is never 0 (B. Phipson and G. K. Smyth, 2010, Stat. Appl. Genet. Mol. Biol. 9).
    Groups without a difference are ignored; without any difference p is 1."""
    sums = sums[np.abs(sums) > ROUNDING]
    if not len(sums):
        return 1.0
    observed = abs(float(sums.sum())) - ROUNDING
    if len(sums) <= MAX_EXACT_GROUPS:
        patterns = (np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums))) & 1
        return float((np.abs((2.0 * patterns - 1.0) @ sums) >= observed).mean())
    swapped = swapped_sums(sums[:, None], PERMUTATIONS, seed)
    hits = sum(int((np.abs(resampled_sums) >= observed).sum()) for resampled_sums in swapped)
    return (hits + 1) / (PERMUTATIONS + 1)


TIE = 1e-9
POWER = 0.8


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Difference of this run minus the baseline, over their common questions.

    ``low`` and ``high`` bound the interval for questions like these at ``confidence``, cluster-robust over groups;
    ``None`` with fewer than two groups. ``p_value`` is the two-sided paired permutation of groups, without adjustment.
    ``detectable`` is the smallest true difference that a comparison of this size finds in 4 of 5 cases. ``only_ours``
    and ``only_baseline`` count the questions left out. ``deviation`` is by group, ``None`` without an interval.
    ``limit`` is the largest difference that the scale allows."""

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
    confidence: float = 0.95
    limit: float = math.inf
    deviation: Deviation | None = field(default=None, repr=False)

    def with_confidence(self, confidence: float) -> PairedDifference:
        """Copy with the interval at another confidence."""
        if self.deviation is None:
            return replace(self, confidence=confidence)
        half = self.deviation.half_width(confidence)
        return replace(
            self,
            low=max(self.value - half, -self.limit),
            high=min(self.value + half, self.limit),
            detectable=half + t_quantile(POWER, self.deviation.freedom) * self.deviation.error,
            confidence=confidence,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON form, without ``deviation`` and ``limit``."""
        figures = {
            attribute.name: getattr(self, attribute.name)
            for attribute in fields(self)
            if attribute.name not in {"deviation", "limit"}
        }
        return figures | {"target": str(self.target)}


@dataclass(frozen=True, slots=True)
class PairedPart:
    """Component of a score in both runs: question -> value, and the component's weight in the sum."""

    candidate: Mapping[Any, float]
    baseline: Mapping[Any, float]
    weight: float = 1.0

    @property
    def common_keys(self) -> list[Hashable]:
        """Questions with a value in both runs, in the order of the candidate."""
        return [key for key in self.candidate if key in self.baseline]


def paired_difference(
    candidate: Mapping[Any, float],
    baseline: Mapping[Any, float],
    groups: Mapping[Any, Hashable] | None = None,
    *,
    limit: float = math.inf,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedDifference | None:
    """Compare two runs question by question (key -> value); ``None`` without a common question.

    ``groups`` (key -> group) names questions that are not independent. The interval is t on the mean difference, with
    the variance of the groups' sums and the degrees of freedom of ``group_freedom``. It is cut at ``limit``, the
    largest difference that the scale allows. A constant difference has no interval and no detectable difference,
    because its variance is unknown."""
    return paired_sum([PairedPart(candidate, baseline)], groups, limit=limit, confidence=confidence, seed=seed)


def paired_sum(
    parts: Sequence[PairedPart],
    groups: Mapping[Any, Hashable] | None = None,
    *,
    limit: float = math.inf,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedDifference | None:
    """Compare the sums of weight x mean of two runs, each component over its common questions.

    This is the comparison of scores on run means, whose components apply to different questions. A question adds
    ``sum_j w_j (d_ij - mean d_j) / n_j`` to the deviation of the sum (linearisation, W. G. Cochran, 1977, Sampling
    Techniques, 6), and ``sum_j w_j d_ij / n_j`` to the sum. The sign of the latter decides wins and losses; swapping
    the runs within a group changes the sign of its sum. With one component of weight 1 this is the paired
    difference."""
    share: dict[Hashable, float] = {}
    deviation: dict[Hashable, float] = {}
    for part in parts:
        common = part.common_keys
        difference = {key: part.candidate[key] - part.baseline[key] for key in common}
        mean = math.fsum(difference.values()) / len(common) if common else 0.0
        for key, key_difference in difference.items():
            share[key] = share.get(key, 0.0) + part.weight * key_difference / len(common)
            deviation[key] = deviation.get(key, 0.0) + part.weight * (key_difference - mean) / len(common)
    return (
        _paired_outcome(share, deviation, groups, _unpaired_counts(parts), limit, confidence, seed) if share else None
    )


def _paired_outcome(
    share: Mapping[Any, float],
    deviation: Mapping[Any, float],
    groups: Mapping[Any, Hashable] | None,
    unpaired: tuple[int, int],
    limit: float,
    confidence: float,
    seed: int,
) -> PairedDifference:
    names = [groups[key] if groups else key for key in share]
    member = factorize(names)
    contributions = np.array(list(share.values()), dtype=np.float64)
    sums = np.bincount(member, weights=contributions).astype(np.float64) * len(share)
    group_count = int(member.max()) + 1
    value, tie_tolerance = math.fsum(share.values()), TIE / len(share)
    return PairedDifference(
        value=value,
        low=None,
        high=None,
        target=Target.QUESTIONS_LIKE_THESE,
        n=len(share),
        groups=group_count,
        wins=int((contributions > tie_tolerance).sum()),
        losses=int((contributions < -tie_tolerance).sum()),
        ties=int((np.abs(contributions) <= tie_tolerance).sum()),
        p_value=permutation_p(sums, seed) if group_count > 1 else None,
        detectable=None,
        only_ours=unpaired[0],
        only_baseline=unpaired[1],
        limit=limit,
        deviation=_deviation(value, np.array(list(deviation.values()), dtype=np.float64), member, names),
    ).with_confidence(confidence)


def _deviation(value: float, deviation: Array, member: Indices, names: Sequence[Hashable]) -> Deviation | None:
    """Deviation by group with the cluster-robust standard error; ``None`` if nothing varies."""
    sizes = np.bincount(member)
    if len(sizes) < 2:
        return None
    sums = np.bincount(member, weights=deviation)
    variance = float(np.square(sums).sum()) * len(sizes) / (len(sizes) - 1)
    if variance <= TIE**2:
        return None
    by_name = dict(zip(dict.fromkeys(names), sums.tolist(), strict=True))
    return Deviation(value, math.sqrt(variance), group_freedom(sizes), by_name)


def _unpaired_counts(parts: Sequence[PairedPart]) -> tuple[int, int]:
    """Numbers of questions without a common component that have a value only in the candidate or only in the
    baseline."""
    common = {key for part in parts for key in part.common_keys}
    only_candidate = {key for part in parts for key in part.candidate} - common
    only_baseline = {key for part in parts for key in part.baseline} - common
    return len(only_candidate), len(only_baseline)
