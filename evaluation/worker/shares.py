"""Sharing an endpoint, or a system under test: its places and rates among all workers, on whatever host, and the rest
it asked for; and calls within them, made one at a time (embeddings, preflights) or together for no ledger (checks of
judges, trials of criteria).

Where it does not answer, whoever notices says so in its row, and nobody calls it for a while. After that it has one
place, and the call there tells whether it answers: all places are there again, or it rests for as long as it has been
down, between a second and five minutes.

Each worker has a row that it renews every second or so. Of places and rates it takes its fair part, yet never more than
the others have left over: who has to hand something over does so at his next renewal, and until then the newcomer
waits. So the endpoint's limits hold at every moment. A worker that was not seen for a while counts as gone.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self, TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from evaluation.judging.calls import JudgeCall, JudgeClient, JudgeReply
from evaluation.models import Endpoint, System
from evaluation.models.work import EndpointShare
from evaluation.network.outcomes import Outcome
from evaluation.network.pacing import FIRST_REST_SECONDS, Allowance, Notice, Pulse, Rate
from evaluation.network.pool import CallPool
from evaluation.network.retrying import LONGEST_WAIT_IN_WORKER
from evaluation.worker.database import retry_on_db_error

RENEW_SECONDS = 1.0
WAITING_SECONDS = 0.25  # between renewals while one has less than one's fair part
GONE_SECONDS = 15.0
FIRST_REST, LONGEST_REST = timedelta(seconds=FIRST_REST_SECONDS), timedelta(seconds=300)


@dataclass(frozen=True, slots=True)
class Granted:
    """What a worker may use now; ``rest_seconds`` is how long the endpoint wants to be left alone; ``complete`` where
    it is all that it will get while the same workers take part. ``down_seconds`` is for how long it has not answered,
    by its last ``fault``; ``None`` where it does."""

    allowance: Allowance
    rest_seconds: float = 0.0
    complete: bool = True
    down_seconds: float | None = None
    fault: str = ""


class Share:
    """One worker's part of an endpoint or system, for a run or something else in a project. It begins with the first
    renewal and ends with ``leave``."""

    def __init__(
        self, shared: Endpoint | System, run_id: int | None, wanted: int, *, project_id: int | None = None
    ) -> None:
        self._rows: QuerySet[Any] = type(shared)._default_manager.filter(pk=shared.pk)
        self._of = {"system" if isinstance(shared, System) else "endpoint": shared}
        self._run_id, self._project_id, self._wanted = run_id, project_id, wanted
        self._worker = uuid.uuid4()

    def renew(self, out: int = 0, limit: int = 0) -> Granted:
        """Take the fair part anew. ``out`` calls are out, or are just being sent: their places cannot be handed over
        yet."""
        with transaction.atomic():
            shared = self._rows.select_for_update().annotate(now=Now()).get()
            shares = EndpointShare.objects.filter(**self._of)
            shares.exclude(_seen_lately()).exclude(worker=self._worker).delete()
            rows = list(shares.order_by("id"))
            mine = next((row for row in rows if row.worker == self._worker), None)
            others = [row for row in rows if row.worker != self._worker]
            wants = [*(row.wanted for row in rows), *([] if mine else [self._wanted])]
            place = rows.index(mine) if mine else len(rows)
            most = 1 if shared.down_since else shared.max_concurrency
            fair = fair_parts(most, wants)[place]
            places = min(fair, max(0, most - sum(row.places for row in others)))
            fair_part = 1.0 / len(wants)
            part = max(0.0, min(fair_part, 1.0 - sum(row.part for row in others)))
            EndpointShare.objects.update_or_create(
                worker=self._worker,
                defaults={
                    **self._of,
                    "run_id": self._run_id,
                    "project_id": self._project_id,
                    "wanted": self._wanted,
                    "places": max(places, min(out, mine.places if mine else 0)),
                    "part": part,
                    "out": out,
                    "limit": min(limit, places) if limit else places,
                    "seen_at": Now(),
                },
            )
            now = shared.now
        rest = (shared.cooldown_until - now).total_seconds() if shared.cooldown_until else 0.0
        tokens = shared.tokens_per_minute if isinstance(shared, Endpoint) else None
        allowance = Allowance(places, _part_of(shared.requests_per_minute, part), _part_of(tokens, part))
        complete = places == fair and part > fair_part * 0.99
        down = (now - shared.down_since).total_seconds() if shared.down_since else None
        return Granted(allowance, max(0.0, rest), complete, down, shared.fault)

    def rest(self, seconds: float) -> None:
        """Have every worker leave the endpoint alone for so long; a longer rest that was asked for before stays."""
        until = Now() + timedelta(seconds=seconds)
        shorter = Q(cooldown_until__isnull=True) | Q(cooldown_until__lt=until)
        self._rows.filter(shorter).update(cooldown_until=until)

    def tell(self, noticed: Notice) -> None:
        """Have every worker hear whether it answers, by a call that was sent since its last rest; what others, sent
        before, come to is known."""
        with transaction.atomic():
            shared = self._rows.select_for_update().annotate(now=Now()).get()
            sent_at = shared.now - timedelta(seconds=time.monotonic() - noticed.sent_at)  # having waited for the row
            if shared.cooldown_until and shared.cooldown_until > sent_at:
                return
            if noticed.fault is None:
                self._rows.exclude(down_since=None).update(down_since=None, fault="")
                return
            since = shared.down_since or shared.now
            rest = min(max(shared.now - since, FIRST_REST), LONGEST_REST)
            self._rows.update(down_since=since, fault=noticed.fault, cooldown_until=shared.now + rest)

    def leave(self) -> None:
        """Hand everything over."""
        EndpointShare.objects.filter(worker=self._worker).delete()


def live_shares() -> QuerySet[EndpointShare]:
    """The shares of the workers that were seen lately."""
    return EndpointShare.objects.filter(_seen_lately())


def _seen_lately() -> Q:
    """Not long ago; nor in the future, as the rows of a dead worker are after the clock was set back."""
    slack = timedelta(seconds=GONE_SECONDS)
    return Q(seen_at__gt=Now() - slack, seen_at__lt=Now() + slack)


def _part_of(rate: int | None, part: float) -> float | None:
    return None if rate is None else rate * part


def fair_parts(whole: int, wants: Sequence[int]) -> list[int]:
    """Whole places for each want: nobody gets more than he wants, what one does not want goes to the others, and the
    parts of those who want more differ by one at most, the earlier getting the larger."""
    parts = [0] * len(wants)
    left = min(whole, sum(wants))
    while left > 0:
        hungry = [i for i, want in enumerate(wants) if parts[i] < want]
        each = max(1, left // len(hungry))
        for i in hungry:
            more = min(each, wants[i] - parts[i], left)
            parts[i] += more
            left -= more
    return parts


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
        self._pulse, self._sent_at = Pulse(), now

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

    @property
    def down(self) -> bool:
        """Whether nobody is answered at present."""
        return self._pulse.down

    def make(self, call: Callable[[], T]) -> T:
        """The call's result. It runs in a thread of its own, so that meanwhile the place is not taken for abandoned."""
        self._sent_at = time.monotonic()
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

    def heard(self, outcome: Outcome, retry_after: float | None) -> None:
        """Have every worker hear whether the endpoint answers, and keep the rest that it asked for."""
        self._pulse.heard(outcome, self._sent_at)
        if noticed := self._pulse.notice():
            retry_on_db_error(lambda: self._share.tell(noticed))
            self._pulse.down = noticed.fault is not None
        if retry_after:
            retry_on_db_error(lambda: self._share.rest(retry_after))

    def _renew(self, out: int) -> Granted:
        granted = retry_on_db_error(lambda: self._share.renew(out, 1))
        self._pulse.down = granted.down_seconds is not None
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
        self._granted = retry_on_db_error(lambda: share.renew(self._pool.may_be_out, self._pool.pace.limit.now))
        self._pool.pace.pulse.down = self._granted.down_seconds is not None
        self._pool.allow(self._granted.allowance, self._granted.rest_seconds)
        self._told = max(self._told, now + self._granted.rest_seconds)
        self._renew_at = now + (RENEW_SECONDS if self._granted.complete else WAITING_SECONDS)

    def _tell(self) -> None:
        """Have every worker hear whether the endpoint answers, and keep the rest that it asked for."""
        share = self._share
        if share is not None and (noticed := self._pool.pace.pulse.notice()):
            retry_on_db_error(lambda: share.tell(noticed))
            self._renew_at = float("-inf")
            return
        rest, now = self._pool.resting, time.monotonic()
        if share is not None and rest and now + rest > self._told + WAITING_SECONDS:
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
