"""Confidence interval for the mean of all answers that stays valid while ratings arrive (betting without replacement).

For each candidate mean m, a bettor stakes on the ratings, with stakes fixed before each rating. If m is true, his
wealth grows by the factor 1 / error with a chance of at most ``error``, however often one checks (I. Waudby-Smith, A.
Ramdas, 2024, Estimating means of bounded random variables by betting, J. R. Stat. Soc. B 86, section 5). The interval
holds all means that have not been excluded in this way.

The judge's values of all answers are known. Each answer therefore counts as its rating minus b times the judge's
deviation from the mean of the unrated answers, with b estimated from the earlier ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array

GRID_POINTS = 1001
# Largest stake, as a share of what a bet can lose.
MAX_STAKE = 0.75


@dataclass(frozen=True, slots=True)
class RatingStream:
    """Stratum whose ratings arrive in random order.

    ``judge`` holds the judge's value of every answer (none if it failed), ``ratings`` the ratings so far as position
    and value. ``planned`` is the number of answers drawn."""

    judge: Sequence[float | None] | Array
    ratings: Sequence[tuple[int, float]]
    planned: int


def any_time_interval(
    strata: Sequence[RatingStream], low: float, high: float, *, error: float = 0.05
) -> tuple[float, float]:
    """Interval for the mean of all answers on the scale ``low`` to ``high``.

    The error is divided among the strata, so that all their intervals hold together."""
    size = sum(len(stratum.judge) for stratum in strata)
    interval_ends = np.zeros(2)
    for stratum in strata:
        interval_ends += (
            len(stratum.judge) / size * np.array(_stratum_interval(stratum, low, high, error / len(strata)))
        )
    return low + float(interval_ends[0]) * (high - low), low + float(interval_ends[1]) * (high - low)


def _stratum_interval(stratum: RatingStream, low: float, high: float, error: float) -> tuple[float, float]:
    """Interval of a stratum, as shares of the scale."""
    judge = np.array(stratum.judge, dtype=np.float64)
    judge_known = judge[~np.isnan(judge)]
    judge_mean = float(judge_known.mean()) if len(judge_known) else (low + high) / 2.0
    judge = (np.where(np.isnan(judge), judge_mean, judge) - low) / (high - low)
    size, means = len(judge), np.linspace(0.0, 1.0, GRID_POINTS)
    log_wealth_above, log_wealth_below = np.zeros(GRID_POINTS), np.zeros(GRID_POINTS)
    log_threshold = np.log(2.0 / error)
    stake_rate = 2.0 * log_threshold / max(1, stratum.planned)
    regression, rating_sum = RunningRegression(5.0 * float(judge.var())), 0.0
    unrated_judge_sum, squared_deviations, judge_min, judge_max = (
        float(judge.sum()),
        0.25,
        float(judge.min()),
        float(judge.max()),
    )
    for index, (position, rating) in enumerate(stratum.ratings):
        slope, unrated_judge_mean = regression.slope, unrated_judge_sum / (size - index)
        scaled_rating = (rating - low) / (high - low)
        adjusted_rating = scaled_rating - slope * (judge[position] - unrated_judge_mean)
        # Mean of the unrated answers if m were the mean of all answers.
        unrated_mean = (size * means - rating_sum) / (size - index)
        plausible = (unrated_mean >= -1e-9) & (unrated_mean <= 1.0 + 1e-9)
        adjusted_min, adjusted_max = (
            -slope * (judge_max - unrated_judge_mean),
            1.0 - slope * (judge_min - unrated_judge_mean),
        )
        stake = (stake_rate / (squared_deviations / (index + 1))) ** 0.5
        stake_up = np.minimum(stake, MAX_STAKE / np.maximum(unrated_mean - adjusted_min, 1e-9))
        stake_down = np.minimum(stake, MAX_STAKE / np.maximum(adjusted_max - unrated_mean, 1e-9))
        log_wealth_above += _log_wealth(stake_up * (adjusted_rating - unrated_mean))
        log_wealth_below += _log_wealth(-stake_down * (adjusted_rating - unrated_mean))
        plausible &= np.maximum(log_wealth_above, log_wealth_below) < log_threshold
        # An excluded mean stays excluded.
        means, log_wealth_above, log_wealth_below = (
            means[plausible],
            log_wealth_above[plausible],
            log_wealth_below[plausible],
        )
        squared_deviations += (adjusted_rating - (rating_sum / index if index else 0.5)) ** 2
        regression.add(float(judge[position]), scaled_rating)
        rating_sum, unrated_judge_sum = rating_sum + scaled_rating, unrated_judge_sum - float(judge[position])
    unrated = size - len(stratum.ratings)
    certain_bounds = rating_sum / size, (rating_sum + unrated) / size
    if not len(means):
        return certain_bounds
    step = 1.0 / (GRID_POINTS - 1)
    return max(certain_bounds[0], float(means[0]) - step), min(certain_bounds[1], float(means[-1]) + step)


class RunningRegression:
    """Running sums of the ratings and the judge's values of the same answers.

    ``prior`` is five times the variance of the judge's values."""

    def __init__(self, prior: float) -> None:
        self.prior, self.count = prior, 0
        self.judge = self.rating = self.squares = self.products = 0.0

    def add(self, judge: float, rating: float) -> None:
        self.count += 1
        self.judge, self.rating = self.judge + judge, self.rating + rating
        self.squares, self.products = self.squares + judge * judge, self.products + judge * rating

    @property
    def slope(self) -> float:
        """Slope of rating on judge, clipped to 0..1. It starts at 1 with the weight of five ratings."""
        if self.prior <= 0:
            return 0.0
        count = max(1, self.count)
        covariance = self.products - self.judge * self.rating / count
        return min(1.0, max(0.0, (covariance + self.prior) / (self.squares - self.judge**2 / count + self.prior)))


def _log_wealth(gain: Array) -> Array:
    return np.asarray(np.log1p(np.maximum(gain, -1.0 + 1e-12)))
