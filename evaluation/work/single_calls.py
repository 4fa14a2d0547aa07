"""Calls made one at a time (embeddings, preflights) within the places, rates and rest that all workers share."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from types import TracebackType
from typing import Self, TypeVar

from evaluation.judging.pacing import Rate
from evaluation.judging.retrying import LONGEST_WAIT_IN_WORKER
from evaluation.models import Endpoint
from evaluation.work.database import retry_on_db_error
from evaluation.work.shares import RENEW_SECONDS, WAITING_SECONDS, Granted, Share

T = TypeVar("T")


class SingleCalls:
    """One place of an endpoint, asked for when a call is to be made. Use as a context manager. ``alive`` is called
    about once a second while one waits, for whoever has leases to prolong."""

    def __init__(
        self,
        endpoint: Endpoint,
        run_id: int | None,
        alive: Callable[[], None] = lambda: None,
        *,
        project_id: int | None = None,
    ) -> None:
        self._share = Share(endpoint, run_id, 1, project_id=project_id)
        self._alive = alive
        now = time.monotonic()
        self._requests, self._tokens = Rate(None, now), Rate(None, now)

    def wait(self, deadline: float, tokens: float = 0.0) -> float:
        """Wait until a call of about so many tokens may be made, and count it; 0 then. Where that takes too long for a
        worker, or ``deadline`` (monotonic seconds) passes: how many seconds to come back after."""
        while True:
            granted = self._renew(0)
            now = time.monotonic()
            rates = max(self._requests.wait(1, now), self._tokens.wait(tokens, now))
            seconds = max(granted.rest_seconds, rates)
            if granted.allowance.calls and seconds <= 0:
                self._requests.use(1)
                self._tokens.use(tokens)
                return 0.0
            seconds = max(seconds, WAITING_SECONDS)
            if seconds > LONGEST_WAIT_IN_WORKER or now + seconds > deadline:
                return seconds
            time.sleep(min(seconds, RENEW_SECONDS))
            self._alive()

    def make(self, call: Callable[[], T]) -> T:
        """The call's result. It runs in a thread of its own, so that meanwhile the place is not taken for abandoned."""
        with ThreadPoolExecutor(1) as thread:
            future = thread.submit(call)
            while True:
                try:
                    return future.result(RENEW_SECONDS)
                except NotYet:
                    if future.done():
                        raise
                    self._renew(1)
                    self._alive()

    def heard(self, retry_after: float | None) -> None:
        """Have every worker keep the rest that the endpoint asked for."""
        if retry_after:
            retry_on_db_error(lambda: self._share.rest(retry_after))

    def _renew(self, out: int) -> Granted:
        granted = retry_on_db_error(lambda: self._share.renew(out, 1))
        now = time.monotonic()
        self._requests.set(granted.allowance.requests_per_minute, now)
        self._tokens.set(granted.allowance.tokens_per_minute, now)
        return granted

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        retry_on_db_error(self._share.leave)
