"""The pool's thread: slots are filled without the database, and unsent calls can be withdrawn."""

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


class SlowJudge:
    """A judge with a fixed delay that records the peak of calls in flight."""

    def __init__(self, seconds: float = 0.0, replies: dict[int, JudgeReply] | None = None) -> None:
        self.seconds, self.replies = seconds, replies or {}
        self.calls = self.in_flight = self.peak = self.cancelled = 0
        self.closed = False
        self.started_at: list[float] = []

    async def call(self, request: JudgeCall) -> JudgeReply:
        self.calls += 1
        number = self.calls
        self.started_at.append(time.monotonic())
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1
        return self.replies.get(number, JudgeReply(Outcome.OK))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closed = True


def collect_replies(pool: CallPool, count: int) -> list[tuple[object, JudgeReply]]:
    replies: list[tuple[object, JudgeReply]] = []
    end = time.monotonic() + 10
    while len(replies) < count and time.monotonic() < end:
        replies += pool.collect(0.5)
    return replies


def test_replies_keep_their_keys_and_calls_in_flight_are_limited() -> None:
    judge = SlowJudge(0.005)
    with CallPool(judge, Allowance(3)) as pool:
        pool.submit((key, call()) for key in range(20))
        replies = collect_replies(pool, 20)
        assert pool.outstanding == pool.queued == 0
    assert sorted(int(str(key)) for key, _ in replies) == list(range(20))
    assert judge.peak == 3
    assert judge.closed


def test_slots_are_filled_without_collecting() -> None:
    judge = SlowJudge(0.01)
    with CallPool(judge, Allowance(2)) as pool:
        pool.submit((key, call()) for key in range(8))
        end = time.monotonic() + 10
        while judge.calls < 8 and time.monotonic() < end:
            time.sleep(0.01)  # what a slow database does
        assert judge.calls == 8
        assert len(collect_replies(pool, 8)) == 8


def test_withdrawn_calls_are_not_sent() -> None:
    judge = SlowJudge(0.05)
    with CallPool(judge, Allowance(2)) as pool:
        pool.submit((key, call()) for key in range(6))
        while judge.calls < 2:
            time.sleep(0.001)
        assert pool.withdraw() == [2, 3, 4, 5]
        assert [key for key, _ in sorted(collect_replies(pool, 2), key=str)] == [0, 1]
        assert pool.collect(0.1) == []
    assert judge.calls == 2


def test_retry_after_delays_all_following_calls() -> None:
    limited = JudgeReply(Outcome.RATE_LIMITED, retry_after=0.3)
    judge = SlowJudge(0.0, {1: limited})
    with CallPool(judge, Allowance(1)) as pool:
        pool.submit((key, call()) for key in range(3))
        assert len(collect_replies(pool, 3)) == 3
    assert judge.started_at[1] - judge.started_at[0] >= 0.3


def test_pause_from_another_worker_delays_calls() -> None:
    judge = SlowJudge()
    with CallPool(judge, Allowance(4)) as pool:
        pool.set_allowance(Allowance(4), pause_seconds=0.3)
        started = time.monotonic()
        pool.submit([(1, call())])
        assert len(collect_replies(pool, 1)) == 1
        assert judge.started_at[0] - started >= 0.2


def test_requests_per_minute_are_limited() -> None:
    judge = SlowJudge()
    with CallPool(judge, Allowance(8, requests_per_minute=600)) as pool:  # ten at once, then ten a second
        pool.submit((key, call()) for key in range(13))
        assert len(collect_replies(pool, 13)) == 13
    assert judge.started_at[12] - judge.started_at[0] >= 0.2


def test_allowance_of_0_sends_nothing_until_raised() -> None:
    judge = SlowJudge()
    with CallPool(judge, Allowance(0)) as pool:
        pool.submit([(1, call())])
        assert pool.collect(0.1) == []
        pool.set_allowance(Allowance(1))
        assert len(collect_replies(pool, 1)) == 1


def test_closing_cancels_calls_in_flight_and_drops_queued_calls() -> None:
    judge = SlowJudge(60.0)
    with CallPool(judge, Allowance(2)) as pool:
        pool.submit((key, call()) for key in range(5))
        while judge.calls < 2:
            time.sleep(0.001)
    assert (judge.calls, judge.cancelled, judge.closed) == (2, 2, True)


def test_client_exception_is_raised_on_collect() -> None:
    class FailingJudge(SlowJudge):
        async def call(self, request: JudgeCall) -> JudgeReply:
            raise LookupError("no rule")

    with CallPool(FailingJudge(), Allowance(1)) as pool:
        pool.submit([(1, call())])
        with pytest.raises(LookupError, match="no rule"):
            collect_replies(pool, 1)


def test_failure_to_open_a_client_is_raised_at_once() -> None:
    class UnopenableJudge(SlowJudge):
        async def __aenter__(self) -> Self:
            raise OSError("no sockets left")

    with pytest.raises(OSError, match="no sockets left"), CallPool(UnopenableJudge(), Allowance(1)):
        pytest.fail("opened")  # pragma: no cover


class UnclosableJudge(SlowJudge):
    """A judge client that cannot be closed."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise OSError("not closed")


def test_failure_to_close_a_client_is_raised_on_exit() -> None:
    with pytest.raises(OSError, match="not closed"), CallPool(UnclosableJudge(), Allowance(1)) as pool:
        pool.submit([(1, call())])


def test_failure_to_close_does_not_hide_an_earlier_exception() -> None:
    with pytest.raises(ValueError, match="first"), CallPool(UnclosableJudge(), Allowance(1)):
        raise ValueError("first")


def test_collect_returns_early_replies_while_calls_are_queued() -> None:
    with CallPool(SlowJudge(0.02), Allowance(1)) as pool:
        pool.submit((key, call()) for key in range(6))
        started = time.monotonic()
        replies: list[tuple[object, JudgeReply]] = []
        while len(replies) < 6 and time.monotonic() < started + 60:
            replies += pool.collect(30)  # told long before, although calls are waiting throughout
        assert len(replies) == 6
        assert time.monotonic() - started < 15


def test_calls_about_to_be_sent_count_as_in_flight() -> None:
    """Otherwise other workers would get slots that this pool is about to fill."""
    with CallPool(SlowJudge(60.0), Allowance(8)) as pool:
        pool.submit([("first", call())])
        assert pool.max_in_flight == 1
        pool.submit([(number, call()) for number in range(20)])
        assert (pool.max_in_flight, pool.in_flight < 8) == (8, True)  # the first ones are sent three milliseconds apart
        time.sleep(0.2)
        pool.set_allowance(Allowance(2))
        time.sleep(0.05)
        assert (pool.max_in_flight, pool.in_flight) == (8, 8)
        pool.withdraw()
