from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import Defer, GiveUp, NeedsAction, Retry, decide, retry_after_seconds

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


def rng() -> random.Random:
    return random.Random(7)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "1"}, 1.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "300"}, 300.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:45 GMT"}, 45.0),
        ({"retry-after": "Fri, 20 Nov 2026 11:00:00 GMT"}, 0.0),  # it has passed
        ({"retry-after": "9999999"}, 86_400.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "45s"}, 45.0),
        ({"retry-after": "8 S"}, 8.0),
        ({"retry-after": "7.66s"}, 7.66),
        ({"retry-after": "250ms"}, 0.25),
        ({"retry-after": "2m"}, 120.0),
        ({"retry-after": "1m30s"}, 90.0),
        ({"retry-after": "1h"}, 3600.0),
        ({"retry-after": "10 seconds"}, 10.0),
        ({"retry-after": "1 minute, 5 seconds"}, 65.0),
        ({"retry-after": "2026-11-20T12:00:30Z"}, 30.0),
        ({"retry-after": "2026-11-20 13:00:30+01:00"}, 30.0),
        ({"retry-after-ms": "800ms"}, 0.8),
        ({"retry-after": "5 parsecs"}, None),
        ({"retry-after": "1_000"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "2,5s"}, None),
        ({"retry-after": "1m30"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "s"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_parsed_as_seconds_or_date_or_none(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers, NOON) == seconds


@given(st.text())
def test_any_retry_after_can_be_parsed(text: str) -> None:
    seconds = retry_after_seconds({"retry-after": text}, NOON)
    assert seconds is None or 0 <= seconds <= 86_400


def test_short_retry_after_is_obeyed_with_jitter() -> None:
    decision = decide(Outcome.RATE_LIMITED, 1, 1.0, rng())
    assert isinstance(decision, Retry)
    assert 1.0 <= decision.seconds <= 1.25  # 1 + at most a quarter of 1


class MaximumJitter(random.Random):
    def uniform(self, a: float, b: float) -> float:
        return b


def test_backoff_starts_at_two_seconds_and_doubles() -> None:
    decisions = [decide(Outcome.SERVER_ERROR, number, None, MaximumJitter()) for number in range(1, 5)]
    assert [decision.seconds for decision in decisions if isinstance(decision, Retry | Defer)] == [2.0, 4.0, 8.0, 16.0]


def test_jitter_is_at_most_a_quarter_of_the_wait_and_one_second() -> None:
    decisions = [decide(Outcome.RATE_LIMITED, 1, seconds, MaximumJitter()) for seconds in (2.0, 8.0)]
    assert decisions == [Retry(2.5), Retry(9.0)]


def test_a_long_retry_after_defers_the_unit_and_frees_the_worker() -> None:
    decision = decide(Outcome.RATE_LIMITED, 1, 300.0, rng())
    assert isinstance(decision, Defer)
    assert 300.0 <= decision.seconds <= 301.0


@pytest.mark.parametrize(
    "outcome", [Outcome.CONNECTION, Outcome.RATE_LIMITED, Outcome.OVERLOADED, Outcome.SERVER_ERROR]
)
def test_transient_failures_are_tried_five_times(outcome: Outcome) -> None:
    decisions = [decide(outcome, number, None, rng()) for number in range(1, 6)]
    assert all(isinstance(decision, Retry | Defer) for decision in decisions[:4])
    assert decisions[4] == GiveUp(str(outcome))


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_backoff_has_full_jitter_below_a_doubling_limit(seed: int, number: int) -> None:
    decision = decide(Outcome.SERVER_ERROR, number, None, random.Random(seed))
    assert isinstance(decision, Retry)
    assert 0.0 <= decision.seconds <= {1: 2.0, 2: 4.0, 3: 8.0, 4: 16.0}[number]


def test_a_timeout_is_tried_twice_at_most_because_it_may_be_billed() -> None:
    assert isinstance(decide(Outcome.TIMEOUT, 1, None, rng()), Retry)
    assert decide(Outcome.TIMEOUT, 2, None, rng()) == GiveUp("timeout")
    rate_limited = [Outcome.RATE_LIMITED, Outcome.RATE_LIMITED]
    assert isinstance(decide(Outcome.TIMEOUT, 3, None, rng(), earlier=rate_limited), Retry | Defer)
    assert decide(Outcome.TIMEOUT, 4, None, rng(), earlier=[*rate_limited, Outcome.TIMEOUT]) == GiveUp("timeout")


@pytest.mark.parametrize("outcome", [Outcome.PARSE, Outcome.TRUNCATED])
def test_an_unreadable_reply_gets_one_repair_try_at_once(outcome: Outcome) -> None:
    assert decide(outcome, 1, None, rng()) == Retry(0.0)
    assert decide(outcome, 2, None, rng()) == GiveUp(str(outcome))
    assert decide(outcome, 3, None, rng(), earlier=[Outcome.OVERLOADED, Outcome.OVERLOADED]) == Retry(0.0)
    assert decide(outcome, 3, None, rng(), earlier=[Outcome.PARSE, Outcome.OVERLOADED]) == GiveUp(str(outcome))


@pytest.mark.parametrize(
    "outcome",
    ["unauthorised", "forbidden", "not_found", "no_credit", "redirect", "blocked", "tls"],
)
def test_failures_that_need_action_stop_at_the_first_attempt(outcome: str) -> None:
    assert decide(Outcome(outcome), 1, None, rng()) == NeedsAction(outcome)


@pytest.mark.parametrize("outcome", ["refused", "filtered", "bad_request", "too_large", "wrong_content", "ok"])
def test_permanent_failures_are_not_retried(outcome: str) -> None:
    assert decide(Outcome(outcome), 1, None, rng()) == GiveUp(outcome)


@given(st.sampled_from(Outcome), st.integers(5, 50), st.none() | st.floats(0, 1e5))
def test_units_are_tried_at_most_five_times(outcome: Outcome, number: int, retry_after: float | None) -> None:
    assert isinstance(decide(outcome, number, retry_after, rng()), GiveUp | NeedsAction)
