"""Interval that holds at every look while ratings arrive."""

from __future__ import annotations

import numpy as np
import pytest

from review.statistics.correction.any_time import RatingStream, any_time_interval

JUDGE = [float(i % 5 + 1) for i in range(100)]


def test_interval_is_the_scale_without_ratings_and_a_point_when_complete() -> None:
    assert any_time_interval([RatingStream(JUDGE, [], 40)], 1, 5) == (1.0, 5.0)
    expert = [(i, 1.0 + i % 2) for i in range(100)]
    assert any_time_interval([RatingStream(JUDGE, expert, 100)], 1, 5) == pytest.approx((1.5, 1.5))


def test_remaining_answers_can_only_be_worst_or_best() -> None:
    # 98 of 100 known to be 3: (98 x 3 + 2 x 1) / 100 and (98 x 3 + 2 x 5) / 100
    low, high = any_time_interval([RatingStream(JUDGE, [(i, 3.0) for i in range(98)], 98)], 1, 5)
    assert low >= 2.96 - 1e-9
    assert high <= 3.04 + 1e-9


def test_interval_never_widens_and_an_accurate_judge_narrows_it() -> None:
    random = np.random.default_rng(1)
    order = random.permutation(100)[:60].tolist()
    widths = []
    for count in (10, 30, 60):
        low, high = any_time_interval([RatingStream(JUDGE, [(i, JUDGE[i]) for i in order[:count]], 60)], 1, 5)
        assert low <= 3.0 <= high
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    blind = [None] * 100
    without_judge = any_time_interval([RatingStream(blind, [(i, JUDGE[i]) for i in order], 60)], 1, 5)
    assert widths[-1] < 0.7 * (without_judge[1] - without_judge[0])


@pytest.mark.parametrize("strata", [1, 2])
@pytest.mark.slow
def test_truth_is_missed_over_all_looks_in_at_most_a_twentieth(strata: int) -> None:
    """400 simulations of 60 ratings; 5% of 400 plus three standard deviations is 33."""
    random, misses = np.random.default_rng(0), 0
    for _ in range(400):
        expert = random.choice([1.0, 4.0, 5.0], 120, p=[0.1, 0.3, 0.6])
        judge = np.clip(expert + random.integers(-1, 2, 120), 1, 5)
        streams = []
        for places in np.array_split(np.arange(120), strata):
            order = random.permutation(len(places))[: 60 // strata]
            ratings = [(int(i), float(expert[places[i]])) for i in order]
            streams.append(RatingStream(judge[places].tolist(), ratings, 60 // strata))
        low, high = any_time_interval(streams, 1, 5)
        misses += not low <= expert.mean() <= high
    assert misses <= 33


def test_reversed_values_give_the_reversed_interval() -> None:
    """For 1 minus each value of judge and experts, the interval is 1 minus the other end."""
    chance = np.random.default_rng(7)
    rating = (chance.random(400) < 0.3).astype(float)
    judge = np.where(chance.random(400) < 0.8, rating, 1.0 - rating)
    ratings = [(i, float(rating[i])) for i in range(120)]
    low, high = any_time_interval([RatingStream(judge, ratings, 200)], 0.0, 1.0)
    reversed_interval = any_time_interval(
        [RatingStream(1.0 - judge, [(i, 1.0 - value) for i, value in ratings], 200)], 0.0, 1.0
    )
    assert 0.0 < low < high < 1.0
    assert reversed_interval == (pytest.approx(1.0 - high), pytest.approx(1.0 - low))
