"""Calls to a judge outside of runs: several at a time, each made again after failures that may pass."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from evaluation.judging.calls import Heard, JudgeCall, JudgeReply, reason_with_words
from evaluation.judging.prompt import hear, repaired, with_first_failure
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import MOST_TRIES, REPAIRABLE, Defer, GiveUp, NeedsPerson, decide

WAIT_SECONDS = 0.5

K = TypeVar("K", bound=Hashable)


class Calls(Protocol):
    """Makes calls, several at a time, as a ``CallPool`` does."""

    @property
    def in_hands(self) -> int: ...

    def submit(self, calls: Iterable[tuple[Hashable, JudgeCall]]) -> None: ...

    def collect(self, timeout: float) -> list[tuple[Hashable, JudgeReply]]: ...


@dataclass(slots=True)
class _Waiting(Generic[K]):
    key: K
    call: JudgeCall
    earlier: list[Outcome]


@dataclass(kw_only=True)
class CallLoop(Generic[K]):
    """Calls that were added, of which ``at_once`` are out at a time.

    ``begin`` gives the key of an attempt, ``record`` stores what came of it. ``more`` is asked before each attempt;
    once it says no, nothing more is sent. Without ``defers`` a call ends where its server asks for a long rest.
    ``away`` is the reason why no call can succeed before a person acts; nothing more is sent then.
    """

    calls: Calls
    at_once: int
    most_tries: int = MOST_TRIES
    defers: bool = True
    begin: Callable[[K], Hashable] = lambda key: key
    record: Callable[[Any, JudgeCall, JudgeReply, Heard], None] = lambda *_: None
    more: Callable[[], bool] = lambda: True
    rng: random.Random = field(default_factory=random.Random)
    away: str = ""
    _order: count[int] = field(default_factory=count)
    _due: list[tuple[float, int, _Waiting[K]]] = field(default_factory=list)
    _out: dict[Hashable, _Waiting[K]] = field(default_factory=dict)

    @property
    def goes_on(self) -> bool:
        """Whether calls are due or out."""
        return bool(self._due or self._out)

    def add(self, key: K, call: JudgeCall, earlier: Iterable[Outcome] = ()) -> None:
        """Add a call. ``earlier`` are outcomes of attempts that were made before."""
        self._put(0.0, _Waiting(key, call, list(earlier)))

    def turn(self) -> list[tuple[K, Heard]]:
        """Send what is due, wait a moment for replies, and return what was heard of the calls that have ended."""
        self._send()
        has_room = len(self._out) < self.at_once
        until = self._due[0][0] - time.monotonic() if self._due and has_room else WAIT_SECONDS
        seconds = max(0.0, min(until, WAIT_SECONDS))
        if self._out:
            done = self.calls.collect(seconds)
            return [end for attempt, reply in done if (end := self._hear(attempt, reply)) is not None]
        if self._due:
            time.sleep(seconds)
        return []

    def drop(self, attempts: Iterable[Hashable]) -> None:
        """Record that attempts were not sent."""
        for attempt in attempts:
            call = self._out.pop(attempt).call
            self.record(attempt, call, JudgeReply(Outcome.NOT_SENT), Heard(Outcome.NOT_SENT, {}))

    def _put(self, seconds: float, waiting: _Waiting[K]) -> None:
        heapq.heappush(self._due, (time.monotonic() + seconds, next(self._order), waiting))

    def _send(self) -> None:
        ready = list[tuple[Hashable, JudgeCall]]()
        while self._due and self._due[0][0] <= time.monotonic() and len(self._out) < self.at_once:
            if self.away or not self.more():
                self._due.clear()
                break
            waiting = heapq.heappop(self._due)[-1]
            attempt = self.begin(waiting.key)
            self._out[attempt] = waiting
            ready.append((attempt, waiting.call))
        self.calls.submit(ready)

    def _hear(self, attempt: Hashable, reply: JudgeReply) -> tuple[K, Heard] | None:
        waiting = self._out.pop(attempt)
        call, earlier = waiting.call, waiting.earlier
        heard = hear(reply, call.ask, call.rung)
        self.record(attempt, call, reply, heard)
        decision = decide(heard.outcome, len(earlier) + 1, reply.retry_after, self.rng, earlier=earlier)
        if isinstance(decision, NeedsPerson):
            self.away = reason_with_words(decision.reason, reply)
            return None
        if isinstance(decision, GiveUp) or len(earlier) + 1 >= self.most_tries:
            return waiting.key, with_first_failure(heard, earlier)
        if isinstance(decision, Defer) and not self.defers:
            return waiting.key, heard
        earlier.append(heard.outcome)
        if heard.outcome in REPAIRABLE:
            waiting.call = repaired(call, heard.outcome)
        self._put(decision.seconds, waiting)
        return None
