"""One worker's turn at calls: units are taken in hand, sent, heard, tried again and put down, and
every call stands in a ledger before it is sent.

While calls are out, the next conversations are taken and their requests made ready, so that a place that becomes free
is filled at once; what came back is written in batches, each in one transaction. Whether judges or systems are called,
and which ledger it is, the units of a run or the pairs of a comparison, is the subclasses' business.
"""

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
from evaluation.network.pacing import still_sent
from evaluation.network.pool import C, CallPool, Given, R
from evaluation.network.retrying import LONGEST_WAIT_IN_WORKER
from evaluation.worker.collector import held_back
from evaluation.worker.database import STORAGE_FULL, is_short_of_space, retry_on_db_error
from evaluation.worker.shares import RENEW_SECONDS, WAITING_SECONDS, Granted, Share

HEARTBEAT_SHARE = 3  # leases are prolonged when a third of their time has passed
WAIT_SECONDS = 0.5  # how long one waits for replies before looking at the run again
TICK_SECONDS = 1.0
LOOK_SECONDS = 0.1  # how often one looks at the run's state
REST_SLACK_SECONDS = 0.5  # a rest that is longer by less is not told anew
DRY_SECONDS = 0.5  # how long one does not ask for more after there was none
LONGEST_OUTAGE = 86_400.0  # seconds after which somebody has to see to who does not answer
MOST_IN_HANDS = 6  # conversations per place that one holds at most, those that wait to be tried again included


@dataclass(slots=True, kw_only=True)
class InHands:
    """Something to make calls for, the attempt that is out for it, and how earlier tries of the same request ended.
    ``key`` tells it from the others in the same hands; a ``suspect`` may be what killed workers before and is sent
    alone."""

    key: int
    attempt_id: int
    call: Any
    claimed_at: float  # monotonic seconds; of the last heartbeat later
    suspect: bool = False
    number: int = 1
    earlier: tuple[Outcome, ...] = ()  # also in other hands, where this call tells whether anybody is answered
    digest: str = ""  # of the call when it was submitted


F = TypeVar("F", bound=InHands)


@dataclass(slots=True)
class Sorted(Generic[F]):
    """What becomes of what replies came back for."""

    finished: list[F] = field(default_factory=list)
    go_on: list[F] = field(default_factory=list)  # with their next call, at once
    again: list[tuple[float, F]] = field(default_factory=list)  # the same after so many seconds
    deferred: list[tuple[float, F]] = field(default_factory=list)  # given back, due after so many seconds
    needs_person: str = ""  # why no call can succeed before somebody acts
    stopped: list[F] = field(default_factory=list)  # by that


class Kept(Protocol[Given]):
    """Replies that were paid for already."""

    def find(self, digests: Collection[str]) -> Mapping[str, Given]: ...


@dataclass(kw_only=True)
class Session(ABC, Generic[F, C, R]):
    """A turn at conversations that share a client, until ``deadline`` (monotonic seconds). ``ended`` counts those that
    came to their end. The hooks that write are called inside a transaction unless they say otherwise."""

    pool: CallPool[C, R]
    deadline: float
    lease_seconds: float
    kept: Kept[R] | None = None  # none where every call shall be made
    share: Share | None = None
    tick: Callable[[], None] | None = None  # for whoever watches, about once a second
    beside: Callable[[], int] | None = None  # a little other work while calls are out; 0 where none is left
    rng: random.Random = field(default_factory=random.Random)
    ended: int = 0
    _hands: dict[int, F] = field(default_factory=dict)
    _later: list[tuple[float, int, F]] = field(default_factory=list)
    _asked: set[str] = field(default_factory=set)  # digests of the calls that are out
    _held: dict[str, list[F]] = field(default_factory=dict)  # identical calls that wait for them

    def __post_init__(self) -> None:
        self._order = count()
        self._looked_at = self._ticked_at = self._dry_until = self._renew_at = float("-inf")
        self._began, self._came_back = time.monotonic(), 0
        self._known_rest = float("-inf")  # until when, in monotonic seconds, every worker knows that it rests
        self._stopping = False
        self.down = False  # nobody is answered at present
        self.ahead = True  # whether the next calls are made ready while places are taken

    @property
    def in_hands(self) -> int:
        """How many conversations are in hands."""
        return len(self._hands)

    @abstractmethod
    def digest_of(self, flight: F) -> str:
        """What identifies the call that is out for it."""

    @abstractmethod
    def heard(self, done: Sequence[tuple[F, R]]) -> tuple[Sorted[F], Callable[[bool], None]]:
        """What follows the replies, and how their rows are inserted: with true after a commit of which one does not
        know whether it happened."""

    @abstractmethod
    def goes_on(self) -> bool:
        """Whether the work has not been stopped from outside. In no transaction."""

    @abstractmethod
    def is_claimable(self) -> bool:
        """Whether something could be taken. In no transaction."""

    @abstractmethod
    def take(self, size: int) -> Sequence[F] | None:
        """Up to ``size`` more conversations with their first attempts, or ``None`` where there are none at present;
        less where some needed no call. Safe to repeat, and in no transaction."""

    @abstractmethod
    def attempt(self, flights: Sequence[F]) -> Sequence[F]:
        """Write the next attempts of those that may go on, and return these; the others are given back."""

    @abstractmethod
    def end(self, flights: Sequence[F]) -> None:
        """Write what the conversations have come to."""

    @abstractmethod
    def give_back(self, flights: Sequence[F], after_seconds: float = 0.0) -> None:
        """Leave them to whoever takes them next, not before so many seconds have passed."""

    @abstractmethod
    def mark_unsent(self, flights: Sequence[F]) -> None:
        """Say that their attempts were never sent."""

    @abstractmethod
    def extend(self, flights: Sequence[F]) -> None:
        """Prolong the leases. In no transaction, safe to repeat."""

    @abstractmethod
    def stop_for(self, reason: str) -> None:
        """Stop everybody's work for a reason that a person has to see to. In no transaction, safe to repeat."""

    def work(self) -> int:
        """Take and call until nothing can be taken, the work is stopped, or time is up; how many ended."""
        try:
            with held_back():
                while self._turn():
                    pass
        finally:
            # Only an interruption leaves something here: it must not wait for its lease to lapse.
            self._put_down()
            self._release(self._hands.values())
        return self.ended

    def _turn(self) -> bool:
        """One round: take, send, collect, write. False when there is nothing left to do."""
        self._look()
        if self._stopping:
            self._put_down()
        elif (wanted := self._wants()) > 0:
            self._fill(wanted)
        self._send_due()
        if not self._hands:
            return self._queues()
        if self._does_other_work():
            self._prolong()
            return True
        done = self.pool.collect(self._patience())
        if done:
            self._receive([(self._hands[int(str(key))], reply) for key, reply in done])
        self._prolong()
        return True

    def _does_other_work(self) -> bool:
        """Do a little of what needs no call while nothing has come back."""
        if self.beside is None or self._stopping or self.pool.has_news:
            return False
        if not self.beside():
            self.beside = None
        return self.beside is not None

    def _queues(self) -> bool:
        """With nothing in hands: whether to wait for a place, which others have, while there is something to do."""
        if self._stopping or self.pool.pace.limit.most or not retry_on_db_error(self.is_claimable):
            return False
        time.sleep(WAITING_SECONDS)
        return True

    def _look(self) -> None:
        """Whether one has to stop: time is up, or the work was stopped."""
        now = time.monotonic()
        if now >= self.deadline:
            self._stopping = True
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            if not self._stopping and is_short_of_space():
                retry_on_db_error(lambda: self.stop_for(STORAGE_FULL))
            if not retry_on_db_error(self.goes_on):
                self._stopping = True
        if self.tick is not None and now - self._ticked_at >= TICK_SECONDS:
            self._ticked_at = now
            self.tick()
        if self.share is not None:
            self._keep_share(self.share)

    def _keep_share(self, share: Share) -> None:
        """Tell the others whether the endpoint answers and what rest it asked for, hear of theirs, and take the fair
        part of its places."""
        noticed = self.pool.pace.pulse.notice()
        if noticed:
            retry_on_db_error(lambda: share.tell(noticed))
            self._renew_at = float("-inf")
        now = time.monotonic()
        rest = self.pool.resting
        until = now + rest
        if not noticed and rest and until > self._known_rest + REST_SLACK_SECONDS:
            retry_on_db_error(lambda: share.rest(rest))
            self._known_rest = until
        if now >= self._renew_at:
            granted = retry_on_db_error(lambda: share.renew(self.pool.may_be_out, self.pool.pace.limit.now))
            self.pool.allow(granted.allowance, granted.rest_seconds)
            self._hear_of_outage(granted)
            self._known_rest = max(self._known_rest, now + granted.rest_seconds)
            self._renew_at = now + (RENEW_SECONDS if granted.complete else WAITING_SECONDS)
            until = max(until, now + granted.rest_seconds)
        if until - now > LONGEST_WAIT_IN_WORKER:
            self._stopping = True

    def _hear_of_outage(self, granted: Granted) -> None:
        """Give back what is not out where nobody is answered; one call at a time will be taken and tell of the end."""
        down, self.down = self.down, granted.down_seconds is not None
        self.pool.pace.pulse.down = self.down
        if self.down and not down:
            self._put_down()
        if granted.down_seconds and granted.down_seconds > LONGEST_OUTAGE:
            retry_on_db_error(lambda: self.stop_for(granted.fault))

    def _patience(self) -> float:
        """How long to wait for replies: what waits in the pool must not be sent long after one should have stopped."""
        now = time.monotonic()
        longest = LOOK_SECONDS if self.pool.waiting else WAIT_SECONDS
        until = [self._later[0][0]] if self._later else []
        until += [] if self._stopping else [self.deadline]
        return max(0.001, min(longest, *(moment - now for moment in until))) if until else longest

    def _wants(self) -> int:
        """How many to take: as many as fill the places three times, so that one is always ready when one ends, once a
        third of them has come back: taking many costs little more than taking one. Nothing beside a suspect."""
        most = self.pool.pace.limit.most
        if time.monotonic() < self._dry_until or any(flight.suspect for flight in self._hands.values()):
            return 0
        if self.down or not self.ahead:
            return most - len(self._hands)
        ready = self.pool.in_hands
        now = time.monotonic()
        free = max(0, most - ready)
        in_time = still_sent(self._came_back, now - self._began, self.deadline - now) - self.pool.waiting
        room = min(MOST_IN_HANDS * most - len(self._hands), max(free, in_time))
        if not ready:
            return min(most, room)  # the places first
        if ready > 2 * most:
            return 0
        wanted = min(3 * most - ready, room)
        return wanted if wanted >= max(1, min(most // 4, free or most)) else 0

    def _fill(self, size: int) -> None:
        taken = retry_on_db_error(lambda: self.take(size))
        if taken is None:
            self._dry_until = time.monotonic() + DRY_SECONDS
        else:
            self._submit(taken)

    def _submit(self, flights: Sequence[F]) -> None:
        """Send the calls, but for those that were paid for already; one identical to a call that is out waits."""
        self._hands |= {flight.key: flight for flight in flights}
        for flight in flights:
            flight.digest = self.digest_of(flight)
        kept, known, sending = self.kept, dict[str, R](), list[F]()
        if kept is not None and flights:
            known = dict(retry_on_db_error(lambda: kept.find([flight.digest for flight in flights])))
        for flight in flights:
            if flight.digest in known:
                continue
            if kept is not None and flight.digest in self._asked:
                self._held.setdefault(flight.digest, []).append(flight)
                continue
            self._asked.add(flight.digest)
            sending.append(flight)
        self.send(sending)
        if known:
            self._receive([(flight, known[flight.digest]) for flight in flights if flight.digest in known])

    def send(self, flights: Sequence[F]) -> None:
        """Have the calls made."""
        self.pool.submit((flight.key, flight.call) for flight in flights)

    def _go_on_held(self, done: Iterable[F]) -> None:
        """Look again at the calls that waited for identical ones: they are answered by them, or sent."""
        waiting: list[F] = []
        for flight in done:
            self._asked.discard(flight.digest)
            waiting += self._held.pop(flight.digest, [])
        if self._stopping or self.down:
            self._release(waiting, unsent=waiting)
        elif waiting:
            self._submit(waiting)

    def _receive(self, done: Sequence[tuple[F, R]]) -> None:
        """Write what came back, with the attempts that follow at once, in one transaction; then send those."""
        if self.share is not None and self.pool.pace.pulse.noticed:
            self._keep_share(self.share)
        self._came_back += len(done)
        after, insert = self.heard(done)
        tries = count()

        def write() -> None:
            with transaction.atomic():
                insert(next(tries) > 0)
                self.end(after.finished)
                for seconds, flight in after.deferred:
                    self.give_back([flight], seconds)
                self.give_back(after.stopped)

        retry_on_db_error(write)
        for flight in (*after.finished, *after.stopped, *(flight for _, flight in after.deferred)):
            del self._hands[flight.key]
        self.ended += len(after.finished)
        if after.needs_person:
            retry_on_db_error(lambda: self.stop_for(after.needs_person))
            self._stopping = True
        now = time.monotonic()
        for seconds, flight in (*((0.0, flight) for flight in after.go_on), *after.again):
            heapq.heappush(self._later, (now + seconds, next(self._order), flight))
        self._go_on_held([flight for flight, _ in done])

    def _send_due(self) -> None:
        """Send the calls that follow an earlier one of their conversation, each attempt written before it is sent."""
        now = time.monotonic()
        due: list[F] = []
        while self._later and self._later[0][0] <= now:
            due.append(heapq.heappop(self._later)[2])
        if due:
            self._submit(retry_on_db_error(lambda: self._attempted(due)))

    def _attempted(self, flights: Sequence[F]) -> Sequence[F]:
        with transaction.atomic():
            going = self.attempt(flights)
        ours = {flight.key for flight in going}
        for flight in flights:
            if flight.key not in ours:
                del self._hands[flight.key]
        return going

    def _put_down(self) -> None:
        """Give back what is not out: calls that wait in the pool, and those that wait to be tried again."""
        waiting = [self._hands[int(str(key))] for key in self.pool.withdraw()]
        self._asked -= {flight.digest for flight in waiting}
        waiting += [flight for held in self._held.values() for flight in held]
        self._held.clear()
        later = [flight for _, _, flight in self._later]
        if waiting or later:
            self._release((*waiting, *later), unsent=waiting)
        self._later.clear()

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
            del self._hands[flight.key]

    def _prolong(self) -> None:
        """Heartbeat of the leases of what has been in hands for a while."""
        now = time.monotonic()
        old = [f for f in self._hands.values() if now - f.claimed_at > self.lease_seconds / HEARTBEAT_SHARE]
        if old:
            retry_on_db_error(lambda: self.extend(old))
            for flight in old:
                flight.claimed_at = now
