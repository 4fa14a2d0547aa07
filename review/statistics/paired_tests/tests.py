"""Tests of paired differences.

The difference of two corrected scores.

Holm's correction for several tests.

McNemar's exact test for pass and fail.

The paired permutation test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from review.statistics.agreement.statistic import Array
from review.statistics.correction.corrected import corrected_overall
from review.statistics.correction.frame import Component
from review.statistics.correction.outcome import Outcome, Target


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
    signed = [_apart(one, "", 1.0) for one in ours] + [_apart(one, "baseline:", -1.0) for one in baseline]
    return corrected_overall(signed, target, confidence)


def _apart(component: Component, prefix: str, sign: float) -> Component:
    answers = [replace(answer, key=(prefix, answer.key)) for answer in component.answers]
    return replace(component, name=prefix + component.name, answers=answers, weight=sign * component.weight)


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
    random = np.random.default_rng(seed)
    hits = 0
    for _ in range(10):
        signs = random.integers(0, 2, (SHUFFLES // 10, len(sums)), dtype=np.int8) * 2.0 - 1.0
        hits += int((np.abs(signs @ sums) >= observed).sum())
    return (hits + 1) / (SHUFFLES + 1)
