"""The pace of one worker: what replies do to limit, rates and rest."""

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


def of_length(characters: int) -> JudgeCall:
    asked = call()
    message = {"role": "user", "content": "x" * characters}
    return replace(asked, rendered=replace(asked.rendered, messages=(message,)))


@pytest.mark.parametrize("outcome", [Outcome.RATE_LIMITED, Outcome.OVERLOADED])
def test_complaints_of_the_server_halve_the_limit(outcome: Outcome) -> None:
    pace = Pace(Allowance(32))
    pace.record_reply(call(), JudgeReply(outcome), sent_at=0.0, now=1.0)
    assert pace.limit.current == 16


@pytest.mark.parametrize("outcome", [Outcome.PARSE, Outcome.REFUSED, Outcome.TIMEOUT, Outcome.SERVER_ERROR])
def test_other_failures_say_nothing_about_the_limit(outcome: Outcome) -> None:
    pace = Pace(Allowance(32))
    pace.record_reply(call(), JudgeReply(outcome), sent_at=0.0, now=1.0)
    assert pace.limit.current == 32


def test_a_wait_the_server_asks_for_holds_for_every_call_and_is_never_cut_short() -> None:
    pace = Pace(Allowance(32))
    pace.record_reply(call(), replace(LIMITED, retry_after=30.0), 0.0, 10.0)
    pace.record_reply(call(), replace(LIMITED, retry_after=1.0), 0.0, 11.0)
    assert pace.wait_seconds(call(), 11.0) == pytest.approx(29.0)
    pace.pause_until(20.0)
    assert pace.wait_seconds(call(), 39.0) == pytest.approx(1.0)
    assert pace.wait_seconds(call(), 40.0) == 0


def test_requests_are_counted_when_they_are_sent() -> None:
    pace = Pace(Allowance(32, requests_per_minute=60))
    assert pace.wait_seconds(call(), 0.0) == 0
    pace.record_sent(call(), 0.0)
    assert pace.wait_seconds(call(), 0.0) == pytest.approx(1.0)


def test_the_first_calls_and_those_after_a_rest_are_sent_apart_from_each_other() -> None:
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


def test_tokens_are_estimated_first_and_corrected_by_what_the_reply_says() -> None:
    # 60,000 a minute = 1,000 a second at once; 1,000 characters are taken for 500 tokens
    pace, asked = Pace(Allowance(32, tokens_per_minute=60_000)), of_length(1000)
    pace.record_sent(asked, 0.0)
    assert pace.wait_seconds(asked, SPREAD_SECONDS) == 0  # 500 of 1,000 left
    pace.record_reply(asked, OK, 0.0, 0.0)  # it took 1,000: nothing left
    assert pace.wait_seconds(asked, 0.0) > 0.5


def test_a_call_that_was_turned_away_used_no_tokens() -> None:
    pace, asked = Pace(Allowance(32, tokens_per_minute=60_000)), of_length(2000)
    pace.record_sent(asked, 0.0)
    assert pace.wait_seconds(asked, 0.0) == pytest.approx(1.0)
    pace.record_reply(asked, LIMITED, 0.0, 0.0)
    assert pace.wait_seconds(asked, SPREAD_SECONDS) == 0


def test_a_reply_without_counts_keeps_the_estimate() -> None:
    pace, asked = Pace(Allowance(32, tokens_per_minute=60_000)), of_length(2000)
    pace.record_sent(asked, 0.0)
    pace.record_reply(asked, replace(OK, tokens_in=None), 0.0, 0.0)
    assert pace.wait_seconds(asked, 0.0) == pytest.approx(1.0)


def test_another_allowance_holds_at_once() -> None:
    pace = Pace(Allowance(32))
    pace.set_allowance(Allowance(4, requests_per_minute=60), 0.0)
    assert pace.limit.current == 4
    pace.record_sent(call(), 0.0)
    assert pace.wait_seconds(call(), 0.0) > 0


@pytest.mark.parametrize(
    ("heard", "passed", "left", "expected"),
    [
        (40, 10.0, 5.0, 20),  # 4 a second
        (40, 10.0, 0.2, 0),
        (40, 10.0, -1.0, 0),
        (0, 10.0, 5.0, sys.maxsize),  # nobody knows yet
        (40, 10.0, math.inf, sys.maxsize),  # time is never up
    ],
)
def test_no_more_calls_are_taken_than_will_be_sent_in_the_time_left(
    heard: int, passed: float, left: float, expected: int
) -> None:
    assert expected_free_slots(heard, passed, left) == expected
