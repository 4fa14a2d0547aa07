"""The pace of one worker: effects of replies on limit, rates and pauses."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pytest

from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.network.outcomes import Outcome
from evaluation.network.pacing import SPREAD_SECONDS, Allowance, Pace, expected_free_slots
from tests.evaluation.judging.samples import call

OK = JudgeReply(Outcome.OK, tokens_in=900, tokens_out=100)
LIMITED = JudgeReply(Outcome.RATE_LIMITED)


def call_of_length(characters: int) -> JudgeCall:
    judge_call = call()
    message = {"role": "user", "content": "x" * characters}
    return replace(judge_call, rendered=replace(judge_call.rendered, messages=(message,)))


@pytest.mark.parametrize("outcome", [Outcome.RATE_LIMITED, Outcome.OVERLOADED])
def test_rate_limiting_and_overload_halve_the_limit(outcome: Outcome) -> None:
    pace = Pace(Allowance(32))
    pace.record_reply(call(), JudgeReply(outcome), sent_at=0.0, now=1.0)
    assert pace.limit.current == 16


@pytest.mark.parametrize("outcome", [Outcome.PARSE, Outcome.REFUSED, Outcome.TIMEOUT, Outcome.SERVER_ERROR])
def test_other_failures_leave_the_limit_unchanged(outcome: Outcome) -> None:
    pace = Pace(Allowance(32))
    pace.record_reply(call(), JudgeReply(outcome), sent_at=0.0, now=1.0)
    assert pace.limit.current == 32


def test_retry_after_pauses_all_calls_and_is_never_shortened() -> None:
    pace = Pace(Allowance(32))
    pace.record_reply(call(), replace(LIMITED, retry_after=30.0), 0.0, 10.0)
    pace.record_reply(call(), replace(LIMITED, retry_after=1.0), 0.0, 11.0)
    assert pace.wait_seconds(call(), 11.0) == pytest.approx(29.0)
    pace.pause_until(20.0)
    assert pace.wait_seconds(call(), 39.0) == pytest.approx(1.0)
    assert pace.wait_seconds(call(), 40.0) == 0


def test_requests_count_when_sent() -> None:
    pace = Pace(Allowance(32, requests_per_minute=60))
    assert pace.wait_seconds(call(), 0.0) == 0
    pace.record_sent(call(), 0.0)
    assert pace.wait_seconds(call(), 0.0) == pytest.approx(1.0)


def test_calls_are_spread_at_the_start_and_after_a_pause() -> None:
    pace = Pace(Allowance(2))
    assert pace.wait_seconds(call(), 10.0) == 0
    pace.record_sent(call(), 10.0)
    assert pace.wait_seconds(call(), 10.0) == pytest.approx(SPREAD_SECONDS)
    pace.record_sent(call(), 10.0 + SPREAD_SECONDS)
    assert (
        pace.wait_seconds(call(), 10.0 + SPREAD_SECONDS) == 0
    )  # two places: the third takes the place of one that ended
    pace.pause_until(20.0)
    pace.record_sent(call(), 20.0)
    assert pace.wait_seconds(call(), 20.0) == pytest.approx(SPREAD_SECONDS)


def test_token_estimates_are_corrected_by_the_reply() -> None:
    # 60,000 a minute = 1,000 a second at once; 1,000 characters are taken for 500 tokens
    pace, judge_call = Pace(Allowance(32, tokens_per_minute=60_000)), call_of_length(1000)
    pace.record_sent(judge_call, 0.0)
    assert pace.wait_seconds(judge_call, SPREAD_SECONDS) == 0  # 500 of 1,000 left
    pace.record_reply(judge_call, OK, 0.0, 0.0)  # it took 1,000: nothing left
    assert pace.wait_seconds(judge_call, 0.0) > 0.5


def test_rate_limited_call_uses_no_tokens() -> None:
    pace, judge_call = Pace(Allowance(32, tokens_per_minute=60_000)), call_of_length(2000)
    pace.record_sent(judge_call, 0.0)
    assert pace.wait_seconds(judge_call, 0.0) == pytest.approx(1.0)
    pace.record_reply(judge_call, LIMITED, 0.0, 0.0)
    assert pace.wait_seconds(judge_call, SPREAD_SECONDS) == 0


def test_a_reply_without_counts_keeps_the_estimate() -> None:
    pace, judge_call = Pace(Allowance(32, tokens_per_minute=60_000)), call_of_length(2000)
    pace.record_sent(judge_call, 0.0)
    pace.record_reply(judge_call, replace(OK, tokens_in=None), 0.0, 0.0)
    assert pace.wait_seconds(judge_call, 0.0) == pytest.approx(1.0)


def test_changed_allowance_applies_at_once() -> None:
    pace = Pace(Allowance(32))
    pace.set_allowance(Allowance(4, requests_per_minute=60), 0.0)
    assert pace.limit.current == 4
    pace.record_sent(call(), 0.0)
    assert pace.wait_seconds(call(), 0.0) > 0


@pytest.mark.parametrize(
    ("completed", "elapsed", "remaining", "expected"),
    [
        (40, 10.0, 5.0, 20),  # 4 a second
        (40, 10.0, 0.2, 0),
        (40, 10.0, -1.0, 0),
        (0, 10.0, 5.0, sys.maxsize),  # nobody knows yet
        (40, 10.0, math.inf, sys.maxsize),  # time is never up
    ],
)
def test_claimed_calls_fit_into_the_time_left(completed: int, elapsed: float, remaining: float, expected: int) -> None:
    assert expected_free_slots(completed, elapsed, remaining) == expected
