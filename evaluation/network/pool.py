"""Many calls in flight at once, made by a thread of its own, so that whoever writes down what came back, or waits for a
database, never keeps a call from being sent or its deadline from being kept.

The ledger stays out of that thread: it submits calls it has written down, and collects what came back. Calls beyond
what the pace allows wait in the pool and are sent the moment one ends.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Hashable, Iterable
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from evaluation.network.pacing import Allowance, Heard, Pace, Paced

LINGER_SECONDS = 0.12  # how long a reply waits for others, so that they are written together

C = TypeVar("C", bound=Paced)
R = TypeVar("R", bound=Heard)
Asked = TypeVar("Asked", contravariant=True)
Given = TypeVar("Given", covariant=True)


class Client(Protocol[Asked, Given]):
    """Whoever is called. ``call`` makes exactly one request and never raises for a fault of the server; retrying is the
    caller's, so that every attempt can be written down before it is made. An asynchronous context manager."""

    async def call(self, request: Asked) -> Given: ...
    async def __aenter__(self) -> Any: ...
    async def __aexit__(self, *error: Any) -> Any: ...


class CallPool(Generic[C, R]):
    """The calls of one client, as many at a time as ``allowance`` says. Use as a context manager, from one thread.
    What its own thread fails with, opening or closing the client, is raised on entering or leaving."""

    def __init__(self, client: Client[C, R], allowance: Allowance) -> None:
        self.client = client
        self.pace = Pace(allowance, time.monotonic())
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name="calls", daemon=True)
        self._opened, self._heard = Event(), Event()
        self._failure: BaseException | None = None
        self._closing = asyncio.Event()
        self._queue = Lock()  # held to look at or change what waits
        self._waiting: deque[tuple[Hashable, C]] = deque()
        self._ended: deque[tuple[Hashable, asyncio.Task[R]]] = deque()
        self._tasks: set[asyncio.Task[R]] = set()
        self._lingering = False
        self._pumps_at: asyncio.TimerHandle | None = None
        self._out = 0  # submitted and neither collected nor withdrawn

    def __enter__(self) -> Self:
        self._thread.start()
        self._opened.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(self, *raised: object) -> None:
        with suppress(RuntimeError):  # the loop is closed already where its thread has failed
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        if self._failure is not None and raised[1] is None:
            raise self._failure

    @property
    def in_hands(self) -> int:
        """Calls submitted and neither collected nor withdrawn yet."""
        return self._out

    @property
    def waiting(self) -> int:
        """Calls submitted and not sent yet."""
        return len(self._waiting)

    @property
    def sent(self) -> int:
        """Calls that are out."""
        return len(self._tasks)

    @property
    def may_be_out(self) -> int:
        """Calls that are out, or will be before more are submitted or less is allowed: others get no place of these."""
        waiting = self.waiting  # looked at first: one that is sent meanwhile counts twice rather than never
        return max(self.sent, min(self.pace.limit.most, self.sent + waiting))

    @property
    def has_news(self) -> bool:
        """Whether there is something to collect at once."""
        return self._heard.is_set()

    @property
    def resting(self) -> float:
        """Seconds until the endpoint wants to be called again; 0 when it may be."""
        return max(0.0, self.pace.rests_until - time.monotonic())

    def allow(self, allowance: Allowance, rest_seconds: float = 0.0) -> None:
        """Another allowance, and a rest that some other worker was told to keep."""

        def change() -> None:
            now = time.monotonic()
            self.pace.allow(allowance, now)
            if rest_seconds > 0:
                self.pace.rest(now + rest_seconds)
            self._pump()

        self._loop.call_soon_threadsafe(change)

    def submit(self, calls: Iterable[tuple[Hashable, C]]) -> None:
        """Have calls made, in their order; their replies come back from :meth:`collect` under their keys."""
        more = list(calls)
        self._out += len(more)
        with self._queue:
            self._waiting.extend(more)
        self._loop.call_soon_threadsafe(self._pump)

    def withdraw(self) -> list[Hashable]:
        """Take back every call that was not sent yet; the keys."""
        with self._queue:
            keys = [key for key, _ in self._waiting]
            self._waiting.clear()
        self._out -= len(keys)
        return keys

    def collect(self, timeout: float) -> list[tuple[Hashable, R]]:
        """The calls that have ended, waiting up to ``timeout`` seconds for some."""
        if self._out:
            self._heard.wait(timeout)
        self._heard.clear()
        found = [self._ended.popleft() for _ in range(len(self._ended))]
        self._out -= len(found)
        return [(key, task.result()) for key, task in found]

    # Everything below runs in the pool's thread.

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001 -- handed to the thread that waits for it
            self._failure = error
        finally:
            self._opened.set()
            self._loop.close()

    async def _serve(self) -> None:
        async with self.client:
            self._opened.set()
            await self._closing.wait()
            self._waiting.clear()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _pump(self) -> None:
        """Send what may be sent now; come back when a rate or a rest allows more."""
        while len(self._tasks) < self.pace.limit.now and not self._closing.is_set():
            with self._queue:
                if not self._waiting:
                    return
                key, call = self._waiting[0]
                now = time.monotonic()
                seconds = self.pace.wait(call, now)
                if seconds <= 0:
                    self._waiting.popleft()
            if seconds > 0:
                if self._pumps_at is not None:
                    self._pumps_at.cancel()
                self._pumps_at = self._loop.call_later(seconds, self._pump)
                return
            self.pace.sent(call, now)
            task = self._loop.create_task(self._call(call))
            self._tasks.add(task)
            task.add_done_callback(partial(self._came_back, key))

    async def _call(self, call: C) -> R:
        sent_at = time.monotonic()
        reply = await self.client.call(call)
        self.pace.heard(call, reply, sent_at, time.monotonic())
        self._tasks.discard(cast(asyncio.Task[R], asyncio.current_task()))
        self._pump()  # before this task has ended, which would take a round of the loop more
        return reply

    def _came_back(self, key: Hashable, task: asyncio.Task[R]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        self._pump()
        self._ended.append((key, task))
        if not self._waiting or self.resting:
            self._heard.set()  # the ledger has to provide something to send, or to hear of the rest
        elif not self._lingering:
            self._lingering = True
            self._loop.call_later(LINGER_SECONDS, self._tell)

    def _tell(self) -> None:
        self._lingering = False
        self._heard.set()
