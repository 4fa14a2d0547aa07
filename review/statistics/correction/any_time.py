"""An interval for the mean of all answers that holds at every look while ratings arrive: betting without replacement.

Somebody who bets against a mean of m, with stakes fixed before each rating, multiplies his money by 1 / error with a
chance of at most ``error`` if m is true, however often one looks (I. Waudby-Smith, A. Ramdas, 2024, Estimating means of
bounded random variables by betting, J. R. Stat. Soc. B 86, section 5). The interval holds the means at which he has not
yet. The judge's values of all answers are known: an answer counts as its rating less b times what the judge gave it
above the answers that are left, with b from the ratings before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array

GRID = 1001
BOLDEST = 0.75  # of what a bet can lose at most


@dataclass(frozen=True, slots=True)
class Arriving:
    """A stratum of which ratings arrive in random order: the judge's value of every answer (none where it failed),
    and the ratings so far, as position and value. ``planned``: how many are drawn."""

    judge: Sequence[float | None] | Array
    ratings: Sequence[tuple[int, float]]
    planned: int


def any_time_interval(
    strata: Sequence[Arriving], low: float, high: float, *, error: float = 0.05
) -> tuple[float, float]:
    """The interval for the mean of all answers on the scale ``low`` to ``high``. Every stratum keeps its share of the
    error, so that all of theirs hold together."""
    size = sum(len(one.judge) for one in strata)
    ends = np.zeros(2)
    for one in strata:
        ends += len(one.judge) / size * np.array(_of_stratum(one, low, high, error / len(strata)))
    return low + float(ends[0]) * (high - low), low + float(ends[1]) * (high - low)


def _of_stratum(one: Arriving, low: float, high: float, error: float) -> tuple[float, float]:
    """The ends for a stratum, as shares of the scale."""
    judge = np.array(one.judge, dtype=np.float64)
    known = judge[~np.isnan(judge)]
    middle = float(known.mean()) if len(known) else (low + high) / 2.0
    judge = (np.where(np.isnan(judge), middle, judge) - low) / (high - low)
    size, means = len(judge), np.linspace(0.0, 1.0, GRID)
    above, below = np.zeros(GRID), np.zeros(GRID)
    enough = np.log(2.0 / error)
    bolder = 2.0 * enough / max(1, one.planned)
    past, given = Past(5.0 * float(judge.var())), 0.0
    left, spread, lowest, highest = float(judge.sum()), 0.25, float(judge.min()), float(judge.max())
    for turn, (place, rating) in enumerate(one.ratings):
        slope, over = past.slope, left / (size - turn)
        worth = (rating - low) / (high - low)
        value = worth - slope * (judge[place] - over)
        target = (size * means - given) / (size - turn)  # the mean of the answers left, were m the mean of all
        held = (target >= -1e-9) & (target <= 1.0 + 1e-9)
        least, most = -slope * (highest - over), 1.0 - slope * (lowest - over)
        stake = (bolder / (spread / (turn + 1))) ** 0.5
        up = np.minimum(stake, BOLDEST / np.maximum(target - least, 1e-9))
        down = np.minimum(stake, BOLDEST / np.maximum(most - target, 1e-9))
        above += _log_money(up * (value - target))
        below += _log_money(-down * (value - target))
        held &= np.maximum(above, below) < enough
        means, above, below = means[held], above[held], below[held]  # a mean once excluded stays so
        spread += (value - (given / turn if turn else 0.5)) ** 2
        past.add(float(judge[place]), worth)
        given, left = given + worth, left - float(judge[place])
    rest = size - len(one.ratings)
    sure = given / size, (given + rest) / size
    if not len(means):
        return sure
    step = 1.0 / (GRID - 1)
    return max(sure[0], float(means[0]) - step), min(sure[1], float(means[-1]) + step)


class Past:
    """The ratings so far and the judge's values of the same answers, as sums; ``prior``: five times the variance of the
    judge's values."""

    def __init__(self, prior: float) -> None:
        self.prior, self.count = prior, 0
        self.judge = self.rating = self.squares = self.products = 0.0

    def add(self, judge: float, rating: float) -> None:
        """Another rated answer."""
        self.count += 1
        self.judge, self.rating = self.judge + judge, self.rating + rating
        self.squares, self.products = self.squares + judge * judge, self.products + judge * rating

    @property
    def slope(self) -> float:
        """Of rating on judge, 0 to 1; beginning at 1, with the weight of five ratings."""
        if self.prior <= 0:
            return 0.0
        count = max(1, self.count)
        shared = self.products - self.judge * self.rating / count
        return min(1.0, max(0.0, (shared + self.prior) / (self.squares - self.judge**2 / count + self.prior)))


def _log_money(gain: Array) -> Array:
    return np.asarray(np.log1p(np.maximum(gain, -1.0 + 1e-12)))
