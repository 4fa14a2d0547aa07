"""A worker's call loop: claim units, send calls, parse replies, retry or release. Each attempt is recorded before it is
sent.

While calls are in flight, the next conversations are claimed and prepared, so that a free slot is filled at once.
Replies are stored in batches, each in one transaction. Subclasses define the calls (judge or system) and the tables
(units of a run or pairs of a comparison)."""

from __future__ import annotations

import heapq
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from django.db import transaction

from evaluation.network.outcomes import Outcome
from evaluation.network.pacing import expected_free_slots
from evaluation.network.pool import CallPool, CallT, PacedReplyT, ReplyT
from evaluation.network.retrying import MAX_WORKER_WAIT_SECONDS
from evaluation.worker.database import STORAGE_FULL, is_short_of_space, retry_on_db_error
from evaluation.worker.endpoint_quota import RENEW_SECONDS, RETRY_RENEW_SECONDS, Quota, QuotaLease
from evaluation.worker.steps import Steps, interleave

# Leases are extended after a third of their time.
HEARTBEATS_PER_LEASE = 3
# How long to wait for replies before the state is checked again.
WAIT_SECONDS = 0.5
# How often the state of the work is checked.
CHECK_SECONDS = 0.1
# A cooldown that is longer by less is not reported again.
REST_TOLERANCE_SECONDS = 0.5
# Pause before the next claim after an empty one.
EMPTY_CLAIM_SECONDS = 0.5
# After this outage a person has to act.
MAX_OUTAGE_SECONDS = 86_400.0
# Maximum conversations per slot, including those waiting for a retry.
MAX_FLIGHTS_PER_SLOT = 6


@dataclass(slots=True, kw_only=True)
class InFlight:
    """A conversation with its attempt in flight, and the outcomes of earlier tries of the same request. ``key``
    identifies it in the session; a ``suspect`` may have crashed workers and is sent alone."""

    key: int
    attempt_id: int
    call: Any
    # Monotonic seconds; later the time of the last heartbeat.
    claimed_at: float
    suspect: bool = False
    number: int = 1
    # During an outage also those of other workers.
    earlier: tuple[Outcome, ...] = ()
    # The digest of the submitted call.
    digest: str = ""


F = TypeVar("F", bound=InFlight)


@dataclass(slots=True)
class Triage(Generic[F]):
    """The next steps after a batch of replies."""

    finished: list[F] = field(default_factory=list)
    # Continue at once with their next call.
    continue_now: list[F] = field(default_factory=list)
    # Repeat the call after so many seconds.
    retry_later: list[tuple[float, F]] = field(default_factory=list)
    # Give back, due after so many seconds.
    deferred: list[tuple[float, F]] = field(default_factory=list)
    # The reason why a person has to act first.
    needs_person: str = ""
    # Stopped for that reason.
    stopped: list[F] = field(default_factory=list)


class ReplyCache(Protocol[ReplyT]):
    """Replies that were already paid for."""

    def find(self, digests: Collection[str]) -> Mapping[str, ReplyT]: ...


@dataclass(kw_only=True)
class WorkerSession(ABC, Generic[F, CallT, PacedReplyT]):
    """A worker's loop over conversations that share a client, until ``deadline`` (monotonic seconds). ``ended`` counts
    the finished ones. Hooks that write run inside a transaction unless their docstring says otherwise."""

    pool: CallPool[CallT, PacedReplyT]
    deadline: float
    lease_seconds: float
    # None if every call has to be made.
    cache: ReplyCache[PacedReplyT] | None = None
    quota_lease: QuotaLease | None = None
    rng: random.Random = field(default_factory=random.Random)
    ended_conversations: int = 0
    _flights: dict[int, F] = field(default_factory=dict)
    _retry_queue: list[tuple[float, int, F]] = field(default_factory=list)
    # Digests of the calls in flight.
    _sent_digests: set[str] = field(default_factory=set)
    # Identical calls that wait for them.
    _duplicates: dict[str, list[F]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._order = count()
        self._checked_at = self._empty_until = self._renew_at = float("-inf")
        self._started_at, self._reply_count = time.monotonic(), 0
        # Until this time (monotonic seconds) every worker knows of the cooldown.
        self._shared_rest_until = float("-inf")
        self._stopping = False
        # True during an outage.
        self.is_down = False
        # Whether to prepare the next calls while all slots are in use.
        self.prefetch = True

    @property
    def flight_count(self) -> int:
        return len(self._flights)

    @abstractmethod
    def digest_of(self, flight: F) -> str:
        """The key of its call; equal calls have equal keys."""

    @abstractmethod
    def triage(self, done: Sequence[tuple[F, PacedReplyT]]) -> tuple[Triage[F], Callable[[bool], None]]:
        """The next steps after the replies, and a function that inserts their rows; call that with true after a commit
        of unknown outcome."""

    @abstractmethod
    def may_continue(self) -> bool:
        """Return whether the work was not stopped from outside. Outside of transactions."""

    @abstractmethod
    def is_claimable(self) -> bool:
        """Return whether anything is claimable. Outside of transactions."""

    @abstractmethod
    def take(self, size: int) -> Sequence[F] | None:
        """Claim up to ``size`` conversations with their first attempts; ``None`` if there are none at present. Fewer if
        some needed no call. Idempotent, outside of transactions."""

    @abstractmethod
    def attempt(self, flights: Sequence[F]) -> Sequence[F]:
        """Record the next attempts of those that may continue, and return them; give the others back."""

    @abstractmethod
    def end(self, flights: Sequence[F]) -> None:
        """Store the results of the conversations."""

    @abstractmethod
    def give_back(self, flights: Sequence[F], after_seconds: float = 0.0) -> None:
        """Release them for other workers, due after so many seconds."""

    @abstractmethod
    def mark_unsent(self, flights: Sequence[F]) -> None:
        """Record that their attempts were never sent."""

    @abstractmethod
    def extend(self, flights: Sequence[F]) -> None:
        """Extend the leases. Outside of transactions, idempotent."""

    @abstractmethod
    def stop_for(self, reason: str) -> None:
        """Stop the work of all workers until a person acts. Outside of transactions, idempotent."""

    def work(self, on_tick: Callable[[], None] | None = None) -> int:
        """Take all steps; the number of ended conversations."""
        interleave([self.steps()], self.pool.wake, on_tick=on_tick)
        return self.ended_conversations

    def steps(self) -> Steps[int]:
        """Claim and call until nothing is claimable, the work is stopped, or time is up; the number of ended
        conversations."""
        try:
            while (seconds := self._step()) is not None:
                yield seconds
        except Exception:
            # A reply may have caused it. Its claim stays counted, so that the call is not paid for without end.
            self._give_back_unsent()
            self._flights.clear()
            raise
        finally:
            # After an interruption, release what is left so that it need not wait for its lease to expire.
            self._give_back_unsent()
            self._release(self._flights.values())
        return self.ended_conversations

    def _step(self) -> float | None:
        """Collect, write, claim and send; the seconds until the next step is due, or ``None`` if nothing is left to
        do."""
        self._check_state()
        if self.pool.has_results and (done := self.pool.collect()):
            self._receive([(self._flights[int(str(key))], reply) for key, reply in done])
        claimed = False
        if self._stopping:
            self._give_back_unsent()
        elif (claim_size := self._claim_size()) > 0:
            claimed = self._take_and_submit(claim_size)
        self._send_retries()
        self._extend_leases()
        if self._flights:
            return self._seconds_to_next_step()
        # Conversations without a call have ended already.
        return 0.0 if claimed else self._seconds_to_next_slot()

    def _seconds_to_next_slot(self) -> float | None:
        """With nothing in flight: the seconds until the next step if other workers hold all slots and work is left."""
        if self._stopping or self.pool.pace.limit.maximum or not retry_on_db_error(self.is_claimable):
            return None
        return RETRY_RENEW_SECONDS

    def _check_state(self) -> None:
        """Check whether to stop: time is up, the work was stopped, or the disk is full."""
        now = time.monotonic()
        if now >= self.deadline:
            self._stopping = True
        if now - self._checked_at >= CHECK_SECONDS:
            self._checked_at = now
            if not self._stopping and is_short_of_space():
                retry_on_db_error(lambda: self.stop_for(STORAGE_FULL))
            if not retry_on_db_error(self.may_continue):
                self._stopping = True
        if self.quota_lease is not None:
            self._renew_quota(self.quota_lease)

    def _renew_quota(self, quota_lease: QuotaLease) -> None:
        """Report outages and cooldowns to the other workers, receive theirs, and renew the quota."""
        notice = self.pool.pace.outage.take_notice()
        if notice:
            retry_on_db_error(lambda: quota_lease.report_outage(notice))
            self._renew_at = float("-inf")
        now = time.monotonic()
        rest_seconds = self.pool.pause_seconds
        until = now + rest_seconds
        if not notice and rest_seconds and until > self._shared_rest_until + REST_TOLERANCE_SECONDS:
            retry_on_db_error(lambda: quota_lease.rest(rest_seconds))
            self._shared_rest_until = until
        if now >= self._renew_at:
            quota = retry_on_db_error(lambda: quota_lease.renew(self.pool.max_in_flight, self.pool.pace.limit.current))
            self.pool.set_allowance(quota.allowance, quota.rest_seconds)
            self._apply_outage(quota)
            self._shared_rest_until = max(self._shared_rest_until, now + quota.rest_seconds)
            self._renew_at = now + (RENEW_SECONDS if quota.complete else RETRY_RENEW_SECONDS)
            until = max(until, now + quota.rest_seconds)
        if until - now > MAX_WORKER_WAIT_SECONDS:
            self._stopping = True

    def _apply_outage(self, quota: Quota) -> None:
        """Enter or leave an outage: give back unsent calls at its start, and stop after too long."""
        was_down, self.is_down = self.is_down, quota.down_seconds is not None
        self.pool.pace.outage.is_down = self.is_down
        if self.is_down and not was_down:
            self._give_back_unsent()
        if quota.down_seconds and quota.down_seconds > MAX_OUTAGE_SECONDS:
            retry_on_db_error(lambda: self.stop_for(quota.fault))

    def _seconds_to_next_step(self) -> float:
        """Seconds until the next step if no reply arrives. Few if calls are queued, because they must not be sent after
        a stop."""
        now = time.monotonic()
        longest = CHECK_SECONDS if self.pool.queued else WAIT_SECONDS
        until = [self._retry_queue[0][0]] if self._retry_queue else []
        until += [] if self._stopping else [self.deadline]
        return max(0.001, min(longest, *(moment - now for moment in until))) if until else longest

    def _claim_size(self) -> int:
        """Number of conversations to claim: enough to fill the slots three times, in large steps because a claim costs
        the same for few. None besides a suspect."""
        max_calls = self.pool.pace.limit.maximum
        if time.monotonic() < self._empty_until or any(flight.suspect for flight in self._flights.values()):
            return 0
        if self.is_down or not self.prefetch:
            return max_calls - len(self._flights)
        in_pool = self.pool.outstanding
        now = time.monotonic()
        free_slots = max(0, max_calls - in_pool)
        sendable = (
            expected_free_slots(self._reply_count, now - self._started_at, self.deadline - now) - self.pool.queued
        )
        room = min(MAX_FLIGHTS_PER_SLOT * max_calls - len(self._flights), max(free_slots, sendable))
        if not in_pool:
            # Fill the slots first.
            return min(max_calls, room)
        if in_pool > 2 * max_calls:
            return 0
        claim_size = min(3 * max_calls - in_pool, room)
        return claim_size if claim_size >= max(1, min(max_calls // 4, free_slots or max_calls)) else 0

    def _take_and_submit(self, size: int) -> bool:
        flights = retry_on_db_error(lambda: self.take(size))
        if flights is None:
            self._empty_until = time.monotonic() + EMPTY_CLAIM_SECONDS
            return False
        self._submit(flights)
        return True

    def _submit(self, flights: Sequence[F]) -> None:
        """Send the calls, except those with a stored reply; a call identical to one in flight waits for its reply."""
        self._flights |= {flight.key: flight for flight in flights}
        for flight in flights:
            flight.digest = self.digest_of(flight)
        cache, cached, sending = self.cache, dict[str, PacedReplyT](), list[F]()
        if cache is not None and flights:
            cached = dict(retry_on_db_error(lambda: cache.find([flight.digest for flight in flights])))
        for flight in flights:
            if flight.digest in cached:
                continue
            if cache is not None and flight.digest in self._sent_digests:
                self._duplicates.setdefault(flight.digest, []).append(flight)
                continue
            self._sent_digests.add(flight.digest)
            sending.append(flight)
        self.send(sending)
        if cached:
            self._receive([(flight, cached[flight.digest]) for flight in flights if flight.digest in cached])

    def send(self, flights: Sequence[F]) -> None:
        """Send the calls."""
        self.pool.submit((flight.key, flight.call) for flight in flights)

    def _release_duplicates(self, done: Iterable[F]) -> None:
        """Submit the duplicates of finished calls again: they get the same reply, or are sent."""
        waiting: list[F] = []
        for flight in done:
            self._sent_digests.discard(flight.digest)
            waiting += self._duplicates.pop(flight.digest, [])
        if self._stopping or self.is_down:
            self._release(waiting, unsent=waiting)
        elif waiting:
            self._submit(waiting)

    def _receive(self, done: Sequence[tuple[F, PacedReplyT]]) -> None:
        """Store replies and results in one transaction; then send the calls that follow."""
        if self.quota_lease is not None and self.pool.pace.outage.pending_notice:
            self._renew_quota(self.quota_lease)
        self._reply_count += len(done)
        triage, insert = self.triage(done)
        attempts = count()

        def write() -> None:
            with transaction.atomic():
                insert(next(attempts) > 0)
                self.end(triage.finished)
                for seconds, flight in triage.deferred:
                    self.give_back([flight], seconds)
                self.give_back(triage.stopped)

        retry_on_db_error(write)
        for flight in (*triage.finished, *triage.stopped, *(flight for _, flight in triage.deferred)):
            del self._flights[flight.key]
        self.ended_conversations += len(triage.finished)
        if triage.needs_person:
            retry_on_db_error(lambda: self.stop_for(triage.needs_person))
            self._stopping = True
        now = time.monotonic()
        for seconds, flight in (*((0.0, flight) for flight in triage.continue_now), *triage.retry_later):
            heapq.heappush(self._retry_queue, (now + seconds, next(self._order), flight))
        self._release_duplicates([flight for flight, _ in done])

    def _send_retries(self) -> None:
        """Send the follow-up calls that are due; each attempt is recorded first."""
        now = time.monotonic()
        due: list[F] = []
        while self._retry_queue and self._retry_queue[0][0] <= now:
            due.append(heapq.heappop(self._retry_queue)[2])
        if due:
            self._submit(retry_on_db_error(lambda: self._write_attempts(due)))

    def _write_attempts(self, flights: Sequence[F]) -> Sequence[F]:
        with transaction.atomic():
            continuing = self.attempt(flights)
        continuing_keys = {flight.key for flight in continuing}
        for flight in flights:
            if flight.key not in continuing_keys:
                del self._flights[flight.key]
        return continuing

    def _give_back_unsent(self) -> None:
        """Give back everything that is not in flight: queued calls, duplicates and retries."""
        waiting = [self._flights[int(str(key))] for key in self.pool.withdraw()]
        self._sent_digests -= {flight.digest for flight in waiting}
        waiting += [flight for duplicates in self._duplicates.values() for flight in duplicates]
        self._duplicates.clear()
        retries = [flight for _, _, flight in self._retry_queue]
        if waiting or retries:
            self._release((*waiting, *retries), unsent=waiting)
        self._retry_queue.clear()

    def _release(self, flights: Iterable[F], unsent: Sequence[F] = ()) -> None:
        flights = list(flights)
        if not flights:
            return

        def release() -> None:
            with transaction.atomic():
                self.mark_unsent(unsent)
                self.give_back(flights)

        retry_on_db_error(release)
        for flight in flights:
            del self._flights[flight.key]

    def _extend_leases(self) -> None:
        """Extend the leases of old conversations."""
        now = time.monotonic()
        old = [f for f in self._flights.values() if now - f.claimed_at > self.lease_seconds / HEARTBEATS_PER_LEASE]
        if old:
            retry_on_db_error(lambda: self.extend(old))
            for flight in old:
                flight.claimed_at = now
