"""Whether a judge's scores grow with the length of the answers: a rank correlation with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST = 20  # answers below which nothing is said
Z = 1.959963984540054  # 97.5 % of the standard normal distribution
WORTH_SAYING = 0.2  # the interval's lower end from which a person is told


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Spearman's correlation of score and length, -1 to 1, with its 95 % interval, over ``n`` answers."""

    rho: float
    low: float
    high: float
    n: int

    @property
    def worth_saying(self) -> bool:
        """Whether the scores grow with length beyond chance and by more than a little."""
        return self.low > WORTH_SAYING


def length_bias(scores: Sequence[float], lengths: Sequence[float]) -> LengthBias | None:
    """The correlation; ``None`` for fewer than 20 answers or where scores or lengths are all the same.

    Interval: Fisher's z with the standard error ``sqrt((1 + rho^2 / 2) / (n - 3))`` of Bonett and Wright (2000),
    Psychometrika 65. A correlation of exactly 1 or -1 has the interval of one point.
    """
    n = len(scores)
    if n < FEWEST:
        return None
    x, y = _ranks(scores), _ranks(lengths)
    mean = (n + 1) / 2
    spread_x = math.fsum((one - mean) ** 2 for one in x)
    spread_y = math.fsum((one - mean) ** 2 for one in y)
    if not spread_x or not spread_y:
        return None
    together = math.fsum((one - mean) * (other - mean) for one, other in zip(x, y, strict=True))
    rho = max(-1.0, min(1.0, together / math.sqrt(spread_x * spread_y)))
    if abs(rho) > 1 - 1e-12:
        return LengthBias(round(rho), round(rho), round(rho), n)
    half = Z * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return LengthBias(rho, math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half), n)


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; tied values share their middle one."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            ranks[place] = (start + end) / 2 + 1
        start = end + 1
    return ranks
