"""Two runs on the same questions: their difference with interval and test; Holm, McNemar, corrected scores."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from review.statistics.agreement.statistic import Array, Indices, numbered
from review.statistics.correction.corrected import corrected_overall, overall_deviation
from review.statistics.correction.frame import Component
from review.statistics.correction.outcome import Deviation, Outcome, Target, group_freedom, t_quantile
from review.statistics.paired_tests.family import swapped_sums


def corrected_difference(
    ours: Sequence[Component],
    baseline: Sequence[Component],
    target: Target = Target.QUESTIONS_LIKE_THESE,
    confidence: float = 0.95,
) -> Outcome:
    """This run's corrected score minus the baseline's. Answers to one question must share a group (its id where it
    has none), so that what makes a question hard for both takes itself out of the interval; the runs' labels are
    different answers' labels.

    Withheld where either score is; components of the baseline are named with ``baseline:`` in front.
    """
    return corrected_overall(_signed(ours, baseline), target, confidence)


def corrected_deviation(ours: Sequence[Component], baseline: Sequence[Component]) -> Deviation | None:
    """How the corrected difference for questions like these deviates by group; ``None`` where it is withheld, or where
    nothing varies."""
    return overall_deviation(_signed(ours, baseline))


def _signed(ours: Sequence[Component], baseline: Sequence[Component]) -> list[Component]:
    return [*_apart(ours, "", 1.0), *_apart(baseline, "baseline:", -1.0)]


def _apart(components: Sequence[Component], prefix: str, sign: float) -> Iterator[Component]:
    """With names that the other run does not have; frames that share their list of them still do."""
    lists = {id(one.frame.names): one.frame.names for one in components}
    apart = {at: [(prefix, key) for key in names] for at, names in lists.items()}
    for one in components:
        frame = replace(one.frame, names=apart[id(one.frame.names)])
        yield replace(one, name=prefix + one.name, frame=frame, weight=sign * one.weight)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values: compared with a level of 5%, they keep the chance of any false finding among all tests
    below 5%. The smallest is multiplied by the number of tests, the next by one less, and none is below an earlier
    one. Source: S. Holm (1979), Scand. J. Stat. 6."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: (p_values[name], name))):
        highest = max(highest, min(1.0, p_values[name] * (len(p_values) - rank)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


@dataclass(frozen=True, slots=True)
class McNemar:
    """``gained``: passed now and not before; ``lost``: the reverse. Questions with equal outcomes say nothing."""

    gained: int
    lost: int
    p_value: float


def mcnemar(gained: int, lost: int) -> McNemar:
    """The two-sided exact test that gains and losses are equally likely: ``2 P(X <= min)`` for X binomial with 1/2,
    at most 1. Source: Q. McNemar (1947), Psychometrika 12. It takes questions as independent.

    :raises ValueError: for negative counts.
    """
    if gained < 0 or lost < 0:
        raise ValueError("counts are not negative")
    differing = gained + lost
    tail = sum(math.comb(differing, hits) for hits in range(min(gained, lost) + 1))
    return McNemar(gained, lost, min(1.0, 2 * tail / 2**differing))


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
    swapped = swapped_sums(sums[:, None], SHUFFLES, seed)
    hits = sum(int((np.abs(some) >= observed).sum()) for some in swapped)
    return (hits + 1) / (SHUFFLES + 1)


TIE = 1e-9
POWER = 0.8


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """This run minus the baseline, over the questions both have.

    ``low`` and ``high``: for questions like these at ``confidence``, cluster-robust over groups; ``None`` where there
    are fewer than two groups. ``p_value``: paired permutation of groups, two-sided, of this difference alone.
    ``detectable``: the smallest true difference a comparison of this size would find in 4 of 5 cases. ``only_ours`` and
    ``only_baseline`` count what was left out. ``deviation`` is by group, ``None`` where there is no interval; ``limit``
    is the largest difference the scale allows.
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
    confidence: float = 0.95
    limit: float = math.inf
    deviation: Deviation | None = field(default=None, repr=False)

    def at(self, confidence: float) -> PairedDifference:
        """The same with the interval at another confidence."""
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
        """What is told of it, as JSON values."""
        told = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in {"deviation", "limit"}}
        return told | {"target": str(self.target)}


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
    names = [groups[key] if groups else key for key in share]
    member = numbered(names)
    adds = np.array(list(share.values()), dtype=np.float64)
    sums = np.bincount(member, weights=adds).astype(np.float64) * len(share)
    count = int(member.max()) + 1
    value, tie = math.fsum(share.values()), TIE / len(share)
    return PairedDifference(
        value=value,
        low=None,
        high=None,
        target=Target.QUESTIONS_LIKE_THESE,
        n=len(share),
        groups=count,
        wins=int((adds > tie).sum()),
        losses=int((adds < -tie).sum()),
        ties=int((np.abs(adds) <= tie).sum()),
        p_value=permutation_p(sums, seed) if count > 1 else None,
        detectable=None,
        only_ours=only[0],
        only_baseline=only[1],
        limit=limit,
        deviation=_deviation(value, np.array(list(deviation.values()), dtype=np.float64), member, names),
    ).at(confidence)


def _deviation(value: float, deviation: Array, member: Indices, names: Sequence[Hashable]) -> Deviation | None:
    """The deviation by group with the cluster-robust standard error; ``None`` where nothing varies."""
    sizes = np.bincount(member)
    if len(sizes) < 2:
        return None
    sums = np.bincount(member, weights=deviation)
    variance = float(np.square(sums).sum()) * len(sizes) / (len(sizes) - 1)
    if variance <= TIE**2:
        return None
    by_name = dict(zip(dict.fromkeys(names), sums.tolist(), strict=True))
    return Deviation(value, math.sqrt(variance), group_freedom(sizes), by_name)


def _only(parts: Sequence[PairedPart]) -> tuple[int, int]:
    """How many questions have a value in one run alone, for no part in both."""
    common = {key for part in parts for key in part.common}
    ours = {key for part in parts for key in part.ours} - common
    baseline = {key for part in parts for key in part.baseline} - common
    return len(ours), len(baseline)
