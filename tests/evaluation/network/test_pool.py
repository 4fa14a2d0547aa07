"""The pool's thread: places are filled without the ledger's help, what was not sent can be taken back."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

import pytest

from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.network.outcomes import Outcome
from evaluation.network.pacing import Allowance
from evaluation.network.pool import CallPool
from tests.evaluation.judging.samples import call


class Scripted:
    """A judge that takes its time, and remembers how many calls were out at once."""

    def __init__(self, seconds: float = 0.0, replies: dict[int, JudgeReply] | None = None) -> None:
        self.seconds, self.replies = seconds, replies or {}
        self.calls = self.out = self.peak = self.cancelled = 0
        self.closed = False
        self.begun: list[float] = []

    async def call(self, request: JudgeCall) -> JudgeReply:
        self.calls += 1
        number = self.calls
        self.begun.append(time.monotonic())
        self.out += 1
        self.peak = max(self.peak, self.out)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.out -= 1
        return self.replies.get(number, JudgeReply(Outcome.OK))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed = True


def collected(pool: CallPool, count: int) -> list[tuple[object, JudgeReply]]:
    found: list[tuple[object, JudgeReply]] = []
    end = time.monotonic() + 10
    while len(found) < count and time.monotonic() < end:
        found += pool.collect(0.5)
    return found


def test_every_call_comes_back_under_its_key_and_never_more_are_out_than_allowed() -> None:
    judge = Scripted(0.005)
    with CallPool(judge, Allowance(3)) as pool:
        pool.submit((key, call()) for key in range(20))
        found = collected(pool, 20)
        assert pool.outstanding == pool.queued == 0
    assert sorted(int(str(key)) for key, _ in found) == list(range(20))
    assert judge.peak == 3
    assert judge.closed


def test_places_are_filled_while_nobody_collects() -> None:
    judge = Scripted(0.01)
    with CallPool(judge, Allowance(2)) as pool:
        pool.submit((key, call()) for key in range(8))
        end = time.monotonic() + 10
        while judge.calls < 8 and time.monotonic() < end:
            time.sleep(0.01)  # what a slow database does
        assert judge.calls == 8
        assert len(collected(pool, 8)) == 8


def test_what_was_not_sent_can_be_taken_back_and_is_not_sent_later() -> None:
    judge = Scripted(0.05)
    with CallPool(judge, Allowance(2)) as pool:
        pool.submit((key, call()) for key in range(6))
        while judge.calls < 2:
            time.sleep(0.001)
        assert pool.withdraw() == [2, 3, 4, 5]
        assert [key for key, _ in sorted(collected(pool, 2), key=str)] == [0, 1]
        assert pool.collect(0.1) == []
    assert judge.calls == 2


def test_after_a_wait_asked_for_the_next_calls_rest_whoever_they_are_for() -> None:
    limited = JudgeReply(Outcome.RATE_LIMITED, retry_after=0.3)
    judge = Scripted(0.0, {1: limited})
    with CallPool(judge, Allowance(1)) as pool:
        pool.submit((key, call()) for key in range(3))
        assert len(collected(pool, 3)) == 3
    assert judge.begun[1] - judge.begun[0] >= 0.3


def test_the_rest_another_worker_was_told_to_keep_is_kept_too() -> None:
    judge = Scripted()
    with CallPool(judge, Allowance(4)) as pool:
        pool.set_allowance(Allowance(4), pause_seconds=0.3)
        started = time.monotonic()
        pool.submit([(1, call())])
        assert len(collected(pool, 1)) == 1
        assert judge.begun[0] - started >= 0.2


def test_requests_per_minute_are_kept() -> None:
    judge = Scripted()
    with CallPool(judge, Allowance(8, requests_per_minute=600)) as pool:  # ten at once, then ten a second
        pool.submit((key, call()) for key in range(13))
        assert len(collected(pool, 13)) == 13
    assert judge.begun[12] - judge.begun[0] >= 0.2


def test_no_place_means_no_call_until_there_is_one() -> None:
    judge = Scripted()
    with CallPool(judge, Allowance(0)) as pool:
        pool.submit([(1, call())])
        assert pool.collect(0.1) == []
        pool.set_allowance(Allowance(1))
        assert len(collected(pool, 1)) == 1


def test_closing_cancels_what_is_out_and_drops_what_waits() -> None:
    judge = Scripted(60.0)
    with CallPool(judge, Allowance(2)) as pool:
        pool.submit((key, call()) for key in range(5))
        while judge.calls < 2:
            time.sleep(0.001)
    assert (judge.calls, judge.cancelled, judge.closed) == (2, 2, True)


def test_a_mistake_in_a_client_comes_out_where_its_reply_would() -> None:
    class Broken(Scripted):
        async def call(self, request: JudgeCall) -> JudgeReply:
            raise LookupError("no rule")

    with CallPool(Broken(), Allowance(1)) as pool:
        pool.submit([(1, call())])
        with pytest.raises(LookupError, match="no rule"):
            collected(pool, 1)


def test_a_client_that_cannot_be_opened_says_so_at_once() -> None:
    class Closed(Scripted):
        async def __aenter__(self) -> Self:
            raise OSError("no sockets left")

    with pytest.raises(OSError, match="no sockets left"), CallPool(Closed(), Allowance(1)):
        pytest.fail("opened")  # pragma: no cover


class Stuck(Scripted):
    """A client that cannot be closed."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise OSError("not closed")


def test_a_failure_after_opening_is_raised_when_the_pool_is_left() -> None:
    with pytest.raises(OSError, match="not closed"), CallPool(Stuck(), Allowance(1)) as pool:
        pool.submit([(1, call())])


def test_it_does_not_hide_what_happened_before() -> None:
    with pytest.raises(ValueError, match="first"), CallPool(Stuck(), Allowance(1)):
        raise ValueError("first")


def test_whoever_waits_is_told_of_every_round_of_replies_while_others_wait_to_be_sent() -> None:
    with CallPool(Scripted(0.02), Allowance(1)) as pool:
        pool.submit((key, call()) for key in range(6))
        began = time.monotonic()
        found: list[tuple[object, JudgeReply]] = []
        while len(found) < 6 and time.monotonic() < began + 60:
            found += pool.collect(30)  # told long before, although calls are waiting throughout
        assert len(found) == 6
        assert time.monotonic() - began < 15


def test_what_will_be_sent_without_further_ado_counts_as_out() -> None:
    """Others must not be given places that a pool which is just filling them believes its own."""
    with CallPool(Scripted(60.0), Allowance(8)) as pool:
        pool.submit([("first", call())])
        assert pool.max_in_flight == 1
        pool.submit([(number, call()) for number in range(20)])
        assert (pool.max_in_flight, pool.in_flight < 8) == (8, True)  # the first ones are sent three milliseconds apart
        time.sleep(0.2)
        pool.set_allowance(Allowance(2))
        time.sleep(0.05)
        assert (pool.max_in_flight, pool.in_flight) == (8, 8)
        pool.withdraw()
