"""Work in steps, so that one thread turns several groups of calls while it writes their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from threading import Event
from typing import Any, TypeVar

from django.db import DatabaseError

from evaluation.worker.gc_pause import paused_gc

TICK_SECONDS = 1.0

T = TypeVar("T")


def no_background(calls_in_flight: bool) -> bool:
    return False


# Each step yields the seconds until the next one is due, or ``None`` while there is nothing to do.
Steps = Generator[float | None, None, T]


def interleave(
    groups: Iterable[Steps[Any]],
    wake: Event,
    *,
    background: Callable[[bool], bool] = no_background,
    on_tick: Callable[[], None] | None = None,
) -> None:
    """Take the steps of all groups in turn, until no group and no background work has anything to do.

    ``wake`` is set when a step should come early, because replies are ready. While none are, ``background`` does a
    little other work; it is told whether calls are in flight and returns false if nothing is left. ``on_tick`` is
    called about once a second, to show progress.

    A group that raises ends alone, because the calls of the others are paid for; so does background work. The first
    error is raised at the end, one of the database at once."""
    # A context for each group, because its tracing spans end in the context in which they began.
    active = [(steps, copy_context()) for steps in groups]
    ticked_at = float("-inf")
    errors: list[Exception] = []

    def attempt(step: Callable[[], T]) -> T | None:
        try:
            return step()
        # Without the database the others can store nothing either.
        except DatabaseError:
            raise
        except Exception as error:  # noqa: BLE001 -- raised at the end
            errors.append(error)
            return None

    with paused_gc(), ExitStack() as stack:
        for steps, context in active:
            stack.callback(context.run, steps.close)
        while True:
            # A group that has raised is exhausted.
            next_steps = [attempt(partial(context.run, next, steps, None)) for steps, context in active]
            due = [seconds for seconds in next_steps if seconds is not None]
            if on_tick is not None and time.monotonic() - ticked_at >= TICK_SECONDS:
                ticked_at = time.monotonic()
                on_tick()
            if not wake.is_set():
                worked = attempt(partial(background, bool(due)))
                if worked is None:
                    background = no_background
                if not worked:
                    if not due:
                        break
                    wake.wait(min(due))
            wake.clear()
    if errors:
        raise errors[0]


def complete(steps: Steps[T], wake: Event | None = None) -> T:
    """Take all steps and return their result."""
    wake = wake or Event()
    try:
        while True:
            wake.wait(next(steps))
            wake.clear()
    except StopIteration as end:
        result: T = end.value
        return result


def delay(seconds: float) -> Steps[None]:
    """Steps that end after so many seconds."""
    until = time.monotonic() + seconds
    while (remaining := until - time.monotonic()) > 0:
        yield remaining


def run_in_thread(
    call: Callable[[], T],
    wake: Event,
    seconds: float = TICK_SECONDS,
    on_wait: Callable[[], object] = lambda: None,
    on_close: Callable[[], object] = lambda: None,
) -> Steps[T]:
    """Run a call in a thread of its own, and ``on_wait`` in this one every so many seconds; the result of the call.

    ``on_close`` is called if the steps are closed during the call, which it should end."""
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(call)
        future.add_done_callback(lambda _: wake.set())
        wait_at = time.monotonic() + seconds
        try:
            while not future.done():
                yield max(0.0, wait_at - time.monotonic())
                if time.monotonic() >= wait_at and not future.done():
                    on_wait()
                    wait_at = time.monotonic() + seconds
        finally:
            if not future.done():
                on_close()
        return future.result()
