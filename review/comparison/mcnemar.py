"""McNemar's exact test for pass and fail."""

from __future__ import annotations

import math
from dataclasses import dataclass


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
