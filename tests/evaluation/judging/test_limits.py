"""The arithmetic of adaptive limits and of rates per minute, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.network.pacing import AdaptiveLimit, Rate


def test_limit_starts_at_the_maximum_and_is_halved_by_rate_limiting() -> None:
    limit = AdaptiveLimit(32)
    assert limit.current == 32
    assert limit.on_rate_limited(sent_at=0.0, now=1.0)
    assert limit.current == 16


def test_rate_limits_of_calls_sent_before_a_cut_count_once() -> None:
    limit = AdaptiveLimit(32)
    reductions = [limit.on_rate_limited(sent_at=0.5, now=1.0 + i / 100) for i in range(32)]
    assert reductions == [True, *[False] * 31]
    assert limit.current == 16
    assert limit.on_rate_limited(sent_at=1.0, now=2.0)
    assert limit.current == 8


def test_full_round_of_successes_raises_the_limit_by_one() -> None:
    limit = AdaptiveLimit(32)
    limit.on_rate_limited(0.0, 1.0)
    # from 16: each call adds 1/limit, so 16 calls add a little less than one, and the 17th completes it
    for _ in range(17):
        limit.on_success()
    assert limit.current == 17


def test_limit_recovers_to_the_maximum() -> None:
    limit = AdaptiveLimit(4)
    limit.on_rate_limited(0.0, 1.0)
    for _ in range(100):
        limit.on_success()
    assert limit.current == 4


def test_limit_is_at_least_1_unless_the_maximum_is_0() -> None:
    limit = AdaptiveLimit(2)
    for second in range(10):
        limit.on_rate_limited(sent_at=second, now=second)
    assert limit.current == 1
    limit.maximum = 0
    assert limit.current == 0


def test_higher_maximum_raises_only_limits_that_were_never_cut() -> None:
    free, cut = AdaptiveLimit(8), AdaptiveLimit(8)
    cut.on_rate_limited(0.0, 1.0)
    free.maximum = cut.maximum = 16
    assert (free.current, cut.current) == (16, 4)


@given(st.lists(st.sampled_from(["good", "bad", "more", "less"]), max_size=200))
def test_limit_stays_between_1_and_the_maximum(events: list[str]) -> None:
    limit = AdaptiveLimit(8)
    for now, event in enumerate(events):
        if event == "good":
            limit.on_success()
        elif event == "bad":
            limit.on_rate_limited(now, now)
        else:
            limit.maximum = max(1, limit.maximum + (1 if event == "more" else -1))
        assert 1 <= limit.current <= limit.maximum


def test_a_rate_allows_a_seconds_worth_at_once_and_then_evenly() -> None:
    rate = Rate(120, now=0.0)  # two a second
    for _ in range(2):
        assert rate.wait_seconds(1, 0.0) == 0
        rate.consume(1)
    assert rate.wait_seconds(1, 0.0) == pytest.approx(0.5)
    assert rate.wait_seconds(1, 0.5) == 0


def test_use_per_minute_is_at_most_the_rate_plus_one_burst() -> None:
    rate, now, used = Rate(60, now=0.0), 0.0, 0
    while now < 60:
        now += rate.wait_seconds(1, now)
        rate.consume(1)
        used += 1
    assert used <= 60 + 1 + 1  # the burst of one, and the one at the minute's end


def test_use_above_a_burst_starts_at_once_and_delays_later_use() -> None:
    rate = Rate(6000, now=0.0)  # a hundred a second
    assert rate.wait_seconds(500, 0.0) == 0
    rate.consume(500)
    # 100 - 500 = -400, so that 1 is there after 4.01 s
    assert rate.wait_seconds(1, 0.0) == pytest.approx(4.01)


def test_unused_amount_is_returned_up_to_the_burst() -> None:
    rate = Rate(6000, now=0.0)
    rate.consume(100)
    rate.consume(-60)
    assert rate.wait_seconds(60, 0.0) == 0
    rate.consume(-1000)
    assert rate.wait_seconds(101, 0.0) == 0
    assert rate.wait_seconds(100, 0.0) == 0


def test_missing_rate_never_waits_and_rate_0_always_waits() -> None:
    assert Rate(None, 0.0).wait_seconds(10**9, 0.0) == 0
    assert Rate(0, 0.0).wait_seconds(1, 10.0) > 0


def test_a_lower_rate_holds_from_the_moment_it_is_set() -> None:
    rate = Rate(600, now=0.0)
    rate.consume(10)
    rate.set_rate(60, now=0.0)
    assert rate.wait_seconds(1, 0.0) == pytest.approx(1.0)
