"""Concurrent judge calls outside of runs, with retries of transient failures."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from evaluation.judging.calls import JudgeCall, JudgeReply, ParsedReply, reason_with_message
from evaluation.judging.prompt import parse_reply, repair_call, with_first_failure
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import MAX_ATTEMPTS, REPAIRABLE, Defer, GiveUp, NeedsAction, decide

WAIT_SECONDS = 0.5

K = TypeVar("K", bound=Hashable)


class CallExecutor(Protocol):
    """Executor of concurrent calls, such as ``CallPool``."""

    @property
    def outstanding(self) -> int: ...

    def submit(self, calls: Iterable[tuple[Hashable, JudgeCall]]) -> None: ...

    def collect(self, timeout: float) -> list[tuple[Hashable, JudgeReply]]: ...


@dataclass(slots=True)
class _PendingCall(Generic[K]):
    key: K
    call: JudgeCall
    earlier: list[Outcome]


@dataclass(kw_only=True)
class CallLoop(Generic[K]):
    """Loop over added calls with at most ``max_in_flight`` at a time.

    ``begin`` returns the key of an attempt, ``record`` stores its reply. ``may_continue`` is checked before each
    attempt; once it is false, nothing more is sent. Without ``may_defer`` a call ends if its server asks for a long
    pause. ``blocked_reason`` is set if no call can succeed before a person acts; sending then stops."""

    calls: CallExecutor
    max_in_flight: int
    max_tries: int = MAX_ATTEMPTS
    may_defer: bool = True
    begin: Callable[[K], Hashable] = lambda key: key
    record: Callable[[Any, JudgeCall, JudgeReply, ParsedReply], None] = lambda *_: None
    may_continue: Callable[[], bool] = lambda: True
    rng: random.Random = field(default_factory=random.Random)
    blocked_reason: str = ""
    _order: count[int] = field(default_factory=count)
    _scheduled: list[tuple[float, int, _PendingCall[K]]] = field(default_factory=list)
    _in_flight: dict[Hashable, _PendingCall[K]] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        return bool(self._scheduled or self._in_flight)

    def add(self, key: K, call: JudgeCall, earlier: Iterable[Outcome] = ()) -> None:
        """Add a call. ``earlier`` are the outcomes of previous attempts."""
        self._schedule(0.0, _PendingCall(key, call, list(earlier)))

    def step(self) -> list[tuple[K, ParsedReply]]:
        """Send due calls, wait briefly for replies, and return the parsed replies of finished calls."""
        self._send()
        has_room = len(self._in_flight) < self.max_in_flight
        until = self._scheduled[0][0] - time.monotonic() if self._scheduled and has_room else WAIT_SECONDS
        seconds = max(0.0, min(until, WAIT_SECONDS))
        if self._in_flight:
            replies = self.calls.collect(seconds)
            return [ended for attempt, reply in replies if (ended := self._handle_reply(attempt, reply)) is not None]
        if self._scheduled:
            time.sleep(seconds)
        return []

    def discard(self, attempts: Iterable[Hashable]) -> None:
        """Record attempts as not sent."""
        for attempt in attempts:
            call = self._in_flight.pop(attempt).call
            self.record(attempt, call, JudgeReply(Outcome.NOT_SENT), ParsedReply(Outcome.NOT_SENT, {}))

    def _schedule(self, seconds: float, pending: _PendingCall[K]) -> None:
        heapq.heappush(self._scheduled, (time.monotonic() + seconds, next(self._order), pending))

    def _send(self) -> None:
        ready = list[tuple[Hashable, JudgeCall]]()
        while (
            self._scheduled and self._scheduled[0][0] <= time.monotonic() and len(self._in_flight) < self.max_in_flight
        ):
            if self.blocked_reason or not self.may_continue():
                self._scheduled.clear()
                break
            pending = heapq.heappop(self._scheduled)[-1]
            attempt = self.begin(pending.key)
            self._in_flight[attempt] = pending
            ready.append((attempt, pending.call))
        self.calls.submit(ready)

    def _handle_reply(self, attempt: Hashable, reply: JudgeReply) -> tuple[K, ParsedReply] | None:
        pending = self._in_flight.pop(attempt)
        call, earlier = pending.call, pending.earlier
        parsed = parse_reply(reply, call.judge_request, call.response_format)
        self.record(attempt, call, reply, parsed)
        decision = decide(parsed.outcome, len(earlier) + 1, reply.retry_after, self.rng, earlier=earlier)
        if isinstance(decision, NeedsAction):
            self.blocked_reason = reason_with_message(decision.reason, reply)
            return None
        if isinstance(decision, GiveUp) or len(earlier) + 1 >= self.max_tries:
            return pending.key, with_first_failure(parsed, earlier)
        if isinstance(decision, Defer) and not self.may_defer:
            return pending.key, parsed
        earlier.append(parsed.outcome)
        if parsed.outcome in REPAIRABLE:
            pending.call = repair_call(call, parsed.outcome)
        self._schedule(decision.seconds, pending)
        return None
