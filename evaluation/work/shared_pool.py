"""Calls within the places, rates and rest that all workers share: made one at a time (embeddings, preflights), or
together for no ledger (checks of judges, trials of criteria)."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import Any, Self, TypeVar

from evaluation.judging.calls import JudgeCall, JudgeClient, JudgeReply
from evaluation.judging.pacing import Allowance, Rate
from evaluation.judging.pool import CallPool
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

    def __exit__(self, *details: Any) -> None:
        retry_on_db_error(self._share.leave)


ENDPOINT_BUSY = "endpoint_busy"


class Busy(Exception):
    """Nothing can be sent for long: the endpoint rests, or others use up its places or rates."""


class SharedPool:
    """A pool of at most ``at_once`` calls of a client. Without an endpoint (the offline baseline) there is nothing to
    share. ``patience`` is how many seconds it may take until something can be sent. Use as a context manager."""

    def __init__(
        self,
        client: JudgeClient,
        endpoint: Endpoint | None,
        at_once: int,
        *,
        project_id: int,
        patience: float = LONGEST_WAIT_IN_WORKER,
    ) -> None:
        self._share = Share(endpoint, None, at_once, project_id=project_id) if endpoint else None
        self._granted = Granted(Allowance(0 if endpoint else at_once))
        self._pool = CallPool(client, self._granted.allowance)
        self._patience = patience
        self._renew_at = float("-inf")
        self._sent_at = time.monotonic()  # when something was out last
        self._told = float("-inf")  # until when, in monotonic seconds, the others know that it rests

    @property
    def in_hands(self) -> int:
        """Calls submitted and neither collected nor withdrawn yet."""
        return self._pool.in_hands

    def submit(self, calls: Iterable[tuple[Hashable, JudgeCall]]) -> None:
        """Have calls made, in their order."""
        if not self._pool.waiting:
            self._sent_at = time.monotonic()
        self._pool.submit(calls)

    def withdraw(self) -> list[Hashable]:
        """Take back every call that was not sent yet; the keys."""
        return self._pool.withdraw()

    def collect(self, timeout: float) -> list[tuple[Hashable, JudgeReply]]:
        """The calls that have ended, waiting up to ``timeout`` seconds for some.

        :raises Busy: where calls wait that cannot be sent for longer than one is patient.
        """
        self._keep_share()
        done = self._pool.collect(min(timeout, RENEW_SECONDS if self._granted.complete else WAITING_SECONDS))
        self._tell()
        now = time.monotonic()
        if self._pool.sent or done or not self._pool.waiting:
            self._sent_at = now
        elif self._pool.resting > self._patience or now - self._sent_at > self._patience:
            raise Busy
        return done

    def end(self) -> list[JudgeReply]:
        """Send nothing more, and wait for what is out: it is paid for."""
        self._pool.withdraw()
        found: list[JudgeReply] = []
        while self._pool.in_hands:
            found += [reply for _, reply in self.collect(RENEW_SECONDS)]
        return found

    def _keep_share(self) -> None:
        now = time.monotonic()
        if self._share is None or now < self._renew_at:
            return
        share = self._share
        self._granted = retry_on_db_error(lambda: share.renew(self._pool.sent, self._pool.pace.limit.now))
        self._pool.allow(self._granted.allowance, self._granted.rest_seconds)
        self._told = max(self._told, now + self._granted.rest_seconds)
        self._renew_at = now + (RENEW_SECONDS if self._granted.complete else WAITING_SECONDS)

    def _tell(self) -> None:
        """Have every worker keep the rest that the endpoint asked for."""
        rest, now = self._pool.resting, time.monotonic()
        if self._share is not None and rest and now + rest > self._told + WAITING_SECONDS:
            share = self._share
            retry_on_db_error(lambda: share.rest(rest))
            self._told = now + rest

    def __enter__(self) -> Self:
        self._pool.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        try:
            self._pool.__exit__(*details)
        finally:
            if self._share is not None:
                retry_on_db_error(self._share.leave)
