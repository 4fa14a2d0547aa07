"""The interval that holds at every look while ratings arrive."""

from __future__ import annotations

import numpy as np
import pytest

from review.statistics.correction.any_time import RatingStream, any_time_interval

JUDGE = [float(at % 5 + 1) for at in range(100)]


def test_without_ratings_all_is_possible_and_with_all_nothing_is_open() -> None:
    assert any_time_interval([RatingStream(JUDGE, [], 40)], 1, 5) == (1.0, 5.0)
    expert = [(at, 1.0 + at % 2) for at in range(100)]
    assert any_time_interval([RatingStream(JUDGE, expert, 100)], 1, 5) == pytest.approx((1.5, 1.5))


def test_what_is_left_can_only_be_worst_or_best() -> None:
    # 98 of 100 known to be 3: (98 x 3 + 2 x 1) / 100 and (98 x 3 + 2 x 5) / 100
    low, high = any_time_interval([RatingStream(JUDGE, [(at, 3.0) for at in range(98)], 98)], 1, 5)
    assert low >= 2.96 - 1e-9
    assert high <= 3.04 + 1e-9


def test_it_never_widens_and_a_judge_who_is_right_narrows_it() -> None:
    random = np.random.default_rng(1)
    order = random.permutation(100)[:60].tolist()
    widths = []
    for count in (10, 30, 60):
        low, high = any_time_interval([RatingStream(JUDGE, [(at, JUDGE[at]) for at in order[:count]], 60)], 1, 5)
        assert low <= 3.0 <= high
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    blind = [None] * 100
    alone = any_time_interval([RatingStream(blind, [(at, JUDGE[at]) for at in order], 60)], 1, 5)
    assert widths[-1] < 0.7 * (alone[1] - alone[0])


@pytest.mark.parametrize("strata", [1, 2])
@pytest.mark.slow
def test_over_all_looks_the_truth_is_left_out_in_at_most_a_twentieth(strata: int) -> None:
    """400 lives of 60 ratings; 5% of 400 and three standard deviations of that are 33."""
    random, missed = np.random.default_rng(0), 0
    for _ in range(400):
        expert = random.choice([1.0, 4.0, 5.0], 120, p=[0.1, 0.3, 0.6])
        judge = np.clip(expert + random.integers(-1, 2, 120), 1, 5)
        arriving = []
        for places in np.array_split(np.arange(120), strata):
            order = random.permutation(len(places))[: 60 // strata]
            rated = [(int(at), float(expert[places[at]])) for at in order]
            arriving.append(RatingStream(judge[places].tolist(), rated, 60 // strata))
        low, high = any_time_interval(arriving, 1, 5)
        missed += not low <= expert.mean() <= high
    assert missed <= 33


def test_turned_round_the_interval_is_turned_round() -> None:
    """Of 1 minus each value, by judge and experts, the interval is 1 minus the other end."""
    chance = np.random.default_rng(7)
    rating = (chance.random(400) < 0.3).astype(float)
    judge = np.where(chance.random(400) < 0.8, rating, 1.0 - rating)
    came = [(at, float(rating[at])) for at in range(120)]
    low, high = any_time_interval([RatingStream(judge, came, 200)], 0.0, 1.0)
    turned = any_time_interval([RatingStream(1.0 - judge, [(at, 1.0 - one) for at, one in came], 200)], 0.0, 1.0)
    assert 0.0 < low < high < 1.0
    assert turned == (pytest.approx(1.0 - high), pytest.approx(1.0 - low))
