"""The call loop: retries, stop conditions and records of attempts."""

from __future__ import annotations

import json
import random
from collections.abc import Hashable, Iterable
from itertools import count
from typing import Any

import pytest

from evaluation.judging import call_loop
from evaluation.judging.call_loop import CallLoop
from evaluation.judging.calls import JudgeCall, JudgeReply, ParsedReply
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.samples import call as sample_call

GOOD = json.dumps({"correctness": {"score": 5, "reason": "yes"}})


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random.Random, "uniform", lambda _rng, low, _high: low)


class ScriptedPool:
    """A pool with scripted replies; ``sent_calls`` holds its calls, ``peak`` the most in flight at once."""

    def __init__(self, *replies: JudgeReply) -> None:
        self.replies, self.pending = list(replies), list[Hashable]()
        self.sent_calls, self.peak = list[JudgeCall](), 0

    @property
    def outstanding(self) -> int:
        return len(self.pending)

    def submit(self, calls: Iterable[tuple[Hashable, JudgeCall]]) -> None:
        for key, call in calls:
            self.pending.append(key)
            self.sent_calls.append(call)
        self.peak = max(self.peak, len(self.pending))

    def collect(self, timeout: float) -> list[tuple[Hashable, JudgeReply]]:
        return [(self.pending.pop(0), self.replies.pop(0) if self.replies else JudgeReply(Outcome.OK, raw=GOOD))]


def run_loop(script: ScriptedPool, keys: int = 1, **options: Any) -> tuple[list[tuple[int, str]], CallLoop[int]]:
    loop = CallLoop[int](calls=script, max_in_flight=options.pop("max_in_flight", 4), **options)
    for key in range(keys):
        loop.add(key, sample_call(metrics=["correctness"]))
    results = []
    while loop.active:
        results += [(key, str(parsed.outcome)) for key, parsed in loop.step()]
    return results, loop


def failed_replies(*outcomes: Outcome, retry_after: float = 0.0) -> list[JudgeReply]:
    return [JudgeReply(outcome, retry_after=retry_after) for outcome in outcomes]


@pytest.mark.parametrize(
    ("outcomes", "end", "calls"),
    [
        ([], "ok", 1),
        ([Outcome.SERVER_ERROR], "ok", 2),
        ([Outcome.RATE_LIMITED] * 4, "ok", 5),
        ([Outcome.OVERLOADED] * 5, "overloaded", 5),
        ([Outcome.TIMEOUT] * 2, "timeout", 2),
        ([Outcome.PARSE, Outcome.PARSE], "parse", 2),
        ([Outcome.PARSE, Outcome.BAD_REQUEST], "parse", 2),  # the repair was refused: what it was to repair counts
        ([Outcome.REFUSED], "refused", 1),
    ],
)
def test_call_is_retried_after_transient_failures(outcomes: list[Outcome], end: str, calls: int) -> None:
    script = ScriptedPool(*failed_replies(*outcomes))
    assert run_loop(script)[0] == [(0, end)]
    assert len(script.sent_calls) == calls


def test_repair_changes_the_request_and_retry_does_not() -> None:
    for outcome, expected in ((Outcome.PARSE, False), (Outcome.SERVER_ERROR, True)):
        script = ScriptedPool(*failed_replies(outcome))
        run_loop(script)
        assert (script.sent_calls[0].rendered == script.sent_calls[1].rendered) is expected


def test_calls_in_flight_are_limited_and_each_attempt_is_recorded() -> None:
    names, rows = count(100), list[tuple[Hashable, str]]()

    def record(attempt: Hashable, _call: JudgeCall, _reply: JudgeReply, parsed: ParsedReply) -> None:
        rows.append((attempt, str(parsed.outcome)))

    script = ScriptedPool(*failed_replies(Outcome.SERVER_ERROR))
    results, _ = run_loop(script, 5, max_in_flight=2, begin=lambda _: next(names), record=record)
    assert (sorted(results), script.peak) == ([(key, "ok") for key in range(5)], 2)
    assert rows[0] == (100, "server_error")
    assert {attempt for attempt, _ in rows} == {100, 101, 102, 103, 104, 105}


def test_earlier_attempts_count() -> None:
    for earlier, limit, calls in (([], 3, 3), ([Outcome.SERVER_ERROR], 3, 2), ([Outcome.SERVER_ERROR] * 2, 3, 1)):
        script = ScriptedPool(*failed_replies(*[Outcome.SERVER_ERROR] * 5))
        loop = CallLoop[int](calls=script, max_in_flight=1, max_tries=limit)
        loop.add(0, sample_call(metrics=["correctness"]), earlier)
        while loop.active:
            loop.step()
        assert len(script.sent_calls) == calls


@pytest.mark.parametrize("outcome", [Outcome.UNAUTHORISED, Outcome.NO_CREDIT, Outcome.BLOCKED])
def test_blocking_outcome_stops_sending(outcome: Outcome) -> None:
    script = ScriptedPool(JudgeReply(Outcome.OK, raw=GOOD), *failed_replies(outcome))
    results, loop = run_loop(script, 9, max_in_flight=3)
    assert loop.blocked_reason == str(outcome)
    assert [end for _, end in results].count("ok") == len(results) < 9
    assert len(script.sent_calls) < 9


def test_calls_in_flight_are_collected_after_a_stop() -> None:
    answers = iter([True, True, False])
    results, _ = run_loop(ScriptedPool(), 5, may_continue=lambda: next(answers, False))
    assert results == [(0, "ok"), (1, "ok")]


def test_long_retry_after_ends_a_call_that_may_not_be_deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_loop(ScriptedPool(*failed_replies(Outcome.RATE_LIMITED, retry_after=600.0)), may_defer=False)[0] == [
        (0, "rate_limited")
    ]
    monkeypatch.setattr(call_loop, "WAIT_SECONDS", 0.001)
    loop = CallLoop[int](calls=ScriptedPool(*failed_replies(Outcome.RATE_LIMITED, retry_after=600.0)), max_in_flight=1)
    loop.add(0, sample_call(metrics=["correctness"]))
    assert [loop.step() for _ in range(3)] == [[], [], []]
    assert loop.active


def test_discarded_attempts_are_recorded_as_not_sent() -> None:
    rows = []
    script = ScriptedPool()
    loop = CallLoop[int](
        calls=script, max_in_flight=2, record=lambda attempt, *arguments: rows.append((attempt, arguments[-1].outcome))
    )
    loop.add(7, sample_call(metrics=["correctness"]))
    loop._send()
    loop.discard([7])
    assert (rows, loop.active) == ([(7, Outcome.NOT_SENT)], False)
