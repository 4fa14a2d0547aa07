"""The call loop: what is made again, what ends a call, and what is recorded of each attempt."""

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


class Script:
    """A pool whose replies are scripted; ``sent`` are the calls it got, ``most`` how many were out at once."""

    def __init__(self, *replies: JudgeReply) -> None:
        self.replies, self.waiting = list(replies), list[Hashable]()
        self.sent, self.most = list[JudgeCall](), 0

    @property
    def outstanding(self) -> int:
        return len(self.waiting)

    def submit(self, calls: Iterable[tuple[Hashable, JudgeCall]]) -> None:
        for key, call in calls:
            self.waiting.append(key)
            self.sent.append(call)
        self.most = max(self.most, len(self.waiting))

    def collect(self, timeout: float) -> list[tuple[Hashable, JudgeReply]]:
        return [(self.waiting.pop(0), self.replies.pop(0) if self.replies else JudgeReply(Outcome.OK, raw=GOOD))]


def ends(script: Script, keys: int = 1, **how: Any) -> tuple[list[tuple[int, str]], CallLoop[int]]:
    loop = CallLoop[int](calls=script, max_in_flight=how.pop("max_in_flight", 4), **how)
    for key in range(keys):
        loop.add(key, sample_call(metrics=["correctness"]))
    found = []
    while loop.active:
        found += [(key, str(heard.outcome)) for key, heard in loop.step()]
    return found, loop


def failing(*outcomes: Outcome, retry_after: float = 0.0) -> list[JudgeReply]:
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
def test_a_call_is_made_again_after_what_passes(outcomes: list[Outcome], end: str, calls: int) -> None:
    script = Script(*failing(*outcomes))
    assert ends(script)[0] == [(0, end)]
    assert len(script.sent) == calls


def test_a_repair_asks_otherwise_and_a_retry_the_same() -> None:
    for outcome, same in ((Outcome.PARSE, False), (Outcome.SERVER_ERROR, True)):
        script = Script(*failing(outcome))
        ends(script)
        assert (script.sent[0].rendered == script.sent[1].rendered) is same


def test_no_more_than_asked_for_are_out_and_each_attempt_is_recorded() -> None:
    names, rows = count(100), list[tuple[Hashable, str]]()

    def record(attempt: Hashable, _call: JudgeCall, _reply: JudgeReply, heard: ParsedReply) -> None:
        rows.append((attempt, str(heard.outcome)))

    script = Script(*failing(Outcome.SERVER_ERROR))
    found, _ = ends(script, 5, max_in_flight=2, begin=lambda _: next(names), record=record)
    assert (sorted(found), script.most) == ([(key, "ok") for key in range(5)], 2)
    assert rows[0] == (100, "server_error")
    assert {attempt for attempt, _ in rows} == {100, 101, 102, 103, 104, 105}


def test_tries_that_were_made_before_count() -> None:
    for before, most, calls in (([], 3, 3), ([Outcome.SERVER_ERROR], 3, 2), ([Outcome.SERVER_ERROR] * 2, 3, 1)):
        script = Script(*failing(*[Outcome.SERVER_ERROR] * 5))
        loop = CallLoop[int](calls=script, max_in_flight=1, max_tries=most)
        loop.add(0, sample_call(metrics=["correctness"]), before)
        while loop.active:
            loop.step()
        assert len(script.sent) == calls


@pytest.mark.parametrize("outcome", [Outcome.UNAUTHORISED, Outcome.NO_CREDIT, Outcome.BLOCKED])
def test_nothing_more_is_sent_once_a_person_has_to_act(outcome: Outcome) -> None:
    script = Script(JudgeReply(Outcome.OK, raw=GOOD), *failing(outcome))
    found, loop = ends(script, 9, max_in_flight=3)
    assert loop.blocked_reason == str(outcome)
    assert [end for _, end in found].count("ok") == len(found) < 9
    assert len(script.sent) < 9


def test_what_is_out_is_heard_when_no_more_is_wanted() -> None:
    answers = iter([True, True, False])
    found, _ = ends(Script(), 5, may_continue=lambda: next(answers, False))
    assert found == [(0, "ok"), (1, "ok")]


def test_a_long_rest_ends_a_call_that_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ends(Script(*failing(Outcome.RATE_LIMITED, retry_after=600.0)), may_defer=False)[0] == [(0, "rate_limited")]
    monkeypatch.setattr(call_loop, "WAIT_SECONDS", 0.001)
    loop = CallLoop[int](calls=Script(*failing(Outcome.RATE_LIMITED, retry_after=600.0)), max_in_flight=1)
    loop.add(0, sample_call(metrics=["correctness"]))
    assert [loop.step() for _ in range(3)] == [[], [], []]
    assert loop.active


def test_attempts_that_were_not_sent_are_recorded_so() -> None:
    rows = []
    script = Script()
    loop = CallLoop[int](
        calls=script, max_in_flight=2, record=lambda attempt, *rest: rows.append((attempt, rest[-1].outcome))
    )
    loop.add(7, sample_call(metrics=["correctness"]))
    loop._send()
    loop.discard([7])
    assert (rows, loop.active) == ([(7, Outcome.NOT_SENT)], False)
