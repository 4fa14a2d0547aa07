"""Runs concurrent calls on an event loop in its own thread, so slow database writes never delay calls or time-outs.

The ledger stays outside that thread: it submits recorded calls and collects their replies. Calls beyond the pace wait
in the pool."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Hashable, Iterable
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from evaluation.network.pacing import Allowance, Pace, PacedCall, PacedReply

# Time that a reply waits for others, so that they are written together.
LINGER_SECONDS = 0.12

CallT = TypeVar("CallT", bound=PacedCall)
PacedReplyT = TypeVar("PacedReplyT", bound=PacedReply)
RequestT = TypeVar("RequestT", contravariant=True)
ReplyT = TypeVar("ReplyT", covariant=True)


class Client(Protocol[RequestT, ReplyT]):
    """Client of an endpoint, as an asynchronous context manager.

    ``call`` makes exactly one request and never raises for a server fault. The caller retries, so that every attempt is
    recorded before it is sent."""

    async def call(self, request: RequestT) -> ReplyT: ...
    async def __aenter__(self) -> Any: ...
    async def __aexit__(self, *error: Any) -> Any: ...


class CallPool(Generic[CallT, PacedReplyT]):
    """Concurrent calls of one client, limited by ``allowance``. Use as a context manager from one thread.

    ``wake`` is set when results are ready; several pools may share it. Errors of the pool's thread while opening or
    closing the client are raised on entering or leaving."""

    def __init__(self, client: Client[CallT, PacedReplyT], allowance: Allowance, wake: Event | None = None) -> None:
        self.client = client
        self.wake = wake or Event()
        self.pace = Pace(allowance, time.monotonic())
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, name="calls", daemon=True)
        self._opened, self._results_ready = Event(), Event()
        self._failure: BaseException | None = None
        self._closing = asyncio.Event()
        # Guards the queue of unsent calls.
        self._queue_lock = Lock()
        self._queued: deque[tuple[Hashable, CallT]] = deque()
        self._ended: deque[tuple[Hashable, asyncio.Task[PacedReplyT]]] = deque()
        self._tasks: set[asyncio.Task[PacedReplyT]] = set()
        self._lingering = False
        self._pump_timer: asyncio.TimerHandle | None = None
        # Calls submitted and neither collected nor withdrawn.
        self._outstanding = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._opened.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(self, *raised: object) -> None:
        # The loop is already closed if its thread failed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        if self._failure is not None and raised[1] is None:
            raise self._failure

    @property
    def outstanding(self) -> int:
        """Number of calls submitted and neither collected nor withdrawn."""
        return self._outstanding

    @property
    def queued(self) -> int:
        """Number of calls submitted and not yet sent."""
        return len(self._queued)

    @property
    def in_flight(self) -> int:
        """Number of calls in flight."""
        return len(self._tasks)

    @property
    def max_in_flight(self) -> int:
        """Upper bound of calls in flight until the next submission or reduced allowance; this worker keeps those
        slots."""
        # Read first, so that a call sent meanwhile counts twice instead of never.
        queued = self.queued
        return max(self.in_flight, min(self.pace.limit.maximum, self.in_flight + queued))

    @property
    def has_results(self) -> bool:
        """Return whether results are ready to collect."""
        return self._results_ready.is_set()

    @property
    def pause_seconds(self) -> float:
        """Seconds until the endpoint's pause ends; 0 if there is none."""
        return max(0.0, self.pace.paused_until - time.monotonic())

    def set_allowance(self, allowance: Allowance, pause_seconds: float = 0.0) -> None:
        """Change the allowance, and pause if another worker reported a pause of the endpoint."""

        def apply_allowance() -> None:
            now = time.monotonic()
            self.pace.set_allowance(allowance, now)
            if pause_seconds > 0:
                self.pace.pause_until(now + pause_seconds)
            self._pump()

        self._loop.call_soon_threadsafe(apply_allowance)

    def submit(self, calls: Iterable[tuple[Hashable, CallT]]) -> None:
        """Queue calls in order; :meth:`collect` returns their replies by key."""
        batch = list(calls)
        self._outstanding += len(batch)
        with self._queue_lock:
            self._queued.extend(batch)
        self._loop.call_soon_threadsafe(self._pump)

    def withdraw(self) -> list[Hashable]:
        """Remove all unsent calls and return their keys."""
        with self._queue_lock:
            keys = [key for key, _ in self._queued]
            self._queued.clear()
        self._outstanding -= len(keys)
        return keys

    def collect(self, timeout: float = 0.0) -> list[tuple[Hashable, PacedReplyT]]:
        """Return the replies of ended calls, waiting up to ``timeout`` seconds for some."""
        if self._outstanding:
            self._results_ready.wait(timeout)
        self._results_ready.clear()
        ended = [self._ended.popleft() for _ in range(len(self._ended))]
        self._outstanding -= len(ended)
        return [(key, task.result()) for key, task in ended]

    # All methods below run in the pool's thread.

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
            self._queued.clear()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _pump(self) -> None:
        """Send the calls that the pace permits, and schedule the next attempt."""
        while len(self._tasks) < self.pace.limit.current and not self._closing.is_set():
            with self._queue_lock:
                if not self._queued:
                    return
                key, call = self._queued[0]
                now = time.monotonic()
                seconds = self.pace.wait_seconds(call, now)
                if seconds <= 0:
                    self._queued.popleft()
            if seconds > 0:
                if self._pump_timer is not None:
                    self._pump_timer.cancel()
                self._pump_timer = self._loop.call_later(seconds, self._pump)
                return
            self.pace.record_sent(call, now)
            task = self._loop.create_task(self._call(call))
            self._tasks.add(task)
            task.add_done_callback(partial(self._on_done, key))

    async def _call(self, call: CallT) -> PacedReplyT:
        sent_at = time.monotonic()
        reply = await self.client.call(call)
        self.pace.record_reply(call, reply, sent_at, time.monotonic())
        self._tasks.discard(cast(asyncio.Task[PacedReplyT], asyncio.current_task()))
        # Pump before this task ends, which would take another round of the loop.
        self._pump()
        return reply

    def _on_done(self, key: Hashable, task: asyncio.Task[PacedReplyT]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        self._pump()
        self._ended.append((key, task))
        if not self._queued or self.pause_seconds:
            # The ledger must submit more calls or learn of the pause.
            self._announce_results()
        elif not self._lingering:
            self._lingering = True
            self._loop.call_later(LINGER_SECONDS, self._end_linger)

    def _end_linger(self) -> None:
        self._lingering = False
        self._announce_results()

    def _announce_results(self) -> None:
        self._results_ready.set()
        self.wake.set()
