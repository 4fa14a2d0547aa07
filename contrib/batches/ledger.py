"""Batches in the ledger (which are open, whose turn it is to see to one, what becomes of its units), and the judge step
of a run whose calls go out in them: fresh calls are written into a file instead of being sent, and the replies that
come back are heard as those of single calls are. A repair, another try after a passing fault, and what came to nothing
in batches often enough are single calls, made at once.

A batch is changed by whoever has its turn alone, but for the units that are put into it: that locks its row, and so
does its end, so that no unit is left in a batch that nobody looks at any more.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from contrib.batches.client import request_line
from contrib.batches.models import BatchLine, JudgeBatch
from evaluation.judging.calls import Heard, JudgeReply
from evaluation.judging.prompt import request_hash
from evaluation.models import BatchState, Endpoint, Reply, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.scoring.judges import JudgeSession, UnitFlight, earlier_replies
from evaluation.scoring.replies import insert_replies, reply_row
from evaluation.storage.statements import insert_values
from evaluation.worker import units
from evaluation.worker.database import retry_on_db_error

State = BatchState
OPEN = (State.MADE, State.UPLOADED, State.CREATING, State.SENT)
MOST_FRUITLESS = 2  # lines of a unit that came to nothing; then it is called for singly
FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 5.0, 300.0


def open_batches() -> QuerySet[JudgeBatch]:
    """Batches of which something is still to come."""
    return JudgeBatch.objects.filter(state__in=OPEN)


def due() -> QuerySet[JudgeBatch]:
    """Open batches that somebody has to see to now, and nobody does."""
    free = Q(busy_until__isnull=True) | Q(busy_until__lt=Now())
    return open_batches().filter(free, Q(next_at__isnull=True) | Q(next_at__lte=Now()))


def take_turn(batch: JudgeBatch) -> bool:
    """Have a batch for oneself for a while; false where somebody else has it, or it is not due any more."""
    until = Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS + 3 * settings.CONCORD_CALL_SECONDS)
    taken = bool(due().filter(pk=batch.pk).update(busy_until=until, looks=batch.looks + 1))
    batch.refresh_from_db()
    return taken


def leave(batch: JudgeBatch, *, after_seconds: float | None = None) -> None:
    """Hand the turn over; the batch is due again after so many seconds, else after a while that grows with each
    look."""
    if after_seconds is None:
        after_seconds = min(FIRST_LOOK_SECONDS * 1.5 ** min(batch.looks, 20), LAST_LOOK_SECONDS)
    _mine(batch).update(next_at=Now() + timedelta(seconds=after_seconds), busy_until=None)
    batch.refresh_from_db()


def note(batch: JudgeBatch, **said: object) -> bool:
    """Write down what was learnt of a batch, and keep its turn; false where one has lost it."""
    noted = bool(_mine(batch).update(**said))
    batch.refresh_from_db()
    return noted


def _mine(batch: JudgeBatch) -> QuerySet[JudgeBatch]:
    """The batch's row, as long as this turn holds it."""
    return open_batches().filter(pk=batch.pk, busy_until=batch.busy_until)


def new_batch(run_id: int, endpoint_id: int, model: str) -> JudgeBatch:
    """An empty batch in one's hands."""
    batch = JudgeBatch(run_id=run_id, endpoint_id=endpoint_id, model=model)
    batch.save(force_insert=True)
    take_turn(batch)
    return batch


def put_in(batch: JudgeBatch, wanted: Mapping[WorkUnit, tuple[int, str]], *, share: bool) -> set[int]:
    """Put leased units into a batch by attempt and digest of the request; the attempts that belong into its file. With
    ``share``, one whose request is out already waits for that reply, in whatever batch of the run that is.

    Call inside a transaction. Safe to repeat: what is in a batch already counts, if in this one.
    """
    digests = {digest for _, digest in wanted.values()} if share else set()
    out = BatchLine.objects.filter(digest__in=digests, in_file=True, batch__run_id=batch.run_id)
    known = dict(out.filter(batch__state__in=OPEN).order_by("-id").values_list("digest", "batch_id"))
    ids = {batch.pk, *known.values()}
    there = set(open_batches().filter(pk__in=ids).order_by("pk").select_for_update().values_list("pk", flat=True))
    known = {digest: pk for digest, pk in known.items() if pk in there}
    leased = WorkUnit.objects.filter(pk__in=[u.pk for u in units.still_held(wanted)], state=WorkUnit.State.LEASED)
    ours = set(leased.values_list("pk", flat=True))
    rows, now = [], timezone.now()
    for unit, (attempt_id, digest) in wanted.items():
        if unit.pk in ours:
            into = known.get(digest) if share else None
            rows.append((into or batch.pk, attempt_id, digest, into is None, now))
            known.setdefault(digest, batch.pk)
    insert_values(BatchLine, ("batch_id", "attempt_id", "digest", "in_file", "created_at"), rows)
    units.mark_unsent(attempt_id for _, attempt_id, _, in_file, _ in rows if not in_file)
    WorkUnit.objects.filter(pk__in=ours).update(
        state=WorkUnit.State.BATCHED, lease_token=None, lease_until=None, tries=0
    )
    file = BatchLine.objects.filter(batch=batch, in_file=True, attempt__in=[attempt for attempt, _ in wanted.values()])
    return set(file.values_list("attempt_id", flat=True))


def waiting_in(batch: JudgeBatch) -> QuerySet[BatchLine]:
    """The batch's attempts whose units wait in it."""
    here = Q(attempt__unit__state=WorkUnit.State.BATCHED, attempt__fence=F("attempt__unit__fence"))
    return BatchLine.objects.filter(here, batch=batch)


def unheard(batch: JudgeBatch) -> QuerySet[BatchLine]:
    """The lines of the batch's file that have no reply yet, and whose units wait for it."""
    return waiting_in(batch).filter(in_file=True, attempt__reply__isnull=True).order_by("attempt_id")


def end(batch: JudgeBatch, state: str, reason: str = "", *, unpaid: bool, after_seconds: float = 0.0) -> None:
    """End a batch and give back every unit that still waits in it, not to be taken before so many seconds.

    ``unpaid``: what has no reply was never run, so its attempts cost nothing. Otherwise nobody knows, and they stay
    without a reply.
    """
    with transaction.atomic():
        if not _mine(batch).update(state=state, reason=reason[:100], ended_at=Now(), busy_until=None, next_at=None):
            return
        lines = BatchLine.objects.filter(batch=batch)
        if unpaid:
            units.mark_unsent(lines.filter(attempt__reply__isnull=True).values_list("attempt_id", flat=True))
        waiting = waiting_in(batch).values("attempt__unit")
        units.give_all_back(WorkUnit.objects.filter(pk__in=waiting), after_seconds=after_seconds)
    batch.refresh_from_db()


def fruitless(found: Iterable[WorkUnit]) -> set[int]:
    """Those of the units that had enough lines come to nothing in their present round. No query for units that are
    claimed for the first time."""
    rounds = {unit.pk: unit.round for unit in found if unit.fence > 1}
    if not rounds:
        return set()
    good = [Outcome.OK, Outcome.CACHED]
    lines = BatchLine.objects.filter(attempt__unit__in=rounds, in_file=True).exclude(batch__state=State.DROPPED)
    bad = lines.exclude(attempt__in=Reply.objects.filter(outcome__in=good).values("attempt"))
    rows = bad.values_list("attempt__unit", "attempt__round").order_by().annotate(n=Count("id"))
    return {pk for pk, number, n in rows if number == rounds[pk] and n >= MOST_FRUITLESS}


log = logging.getLogger("concord.work")
MOST_LINES = 2000
MOST_BYTES = 64_000_000
CHUNK = 200  # units that are taken, or replies that are heard, at a time


@dataclass(kw_only=True)
class BatchSession(JudgeSession):
    """A turn at units whose judges share an endpoint and a model. ``batches`` is false where the endpoint takes none
    any more: then every call is made singly, and only what is out still comes back in a batch."""

    endpoint: Endpoint
    model: str
    batches: bool = True
    batch: JudgeBatch | None = None  # the one being written
    lines: list[bytes] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether no more fits into the batch."""
        return len(self.lines) >= MOST_LINES or sum(map(len, self.lines)) >= MOST_BYTES

    def send(self, flights: Sequence[UnitFlight]) -> None:
        """Write fresh calls into the batch; have the others made."""
        spent = retry_on_db_error(lambda: fruitless([flight.unit for flight in flights]))
        fresh = [f for f in flights if self.batches and not f.earlier and f.unit.pk not in spent]
        ours = {flight.key for flight in fresh}
        super().send([flight for flight in flights if flight.key not in ours])
        for flight in list(fresh):
            self._asked.discard(flight.digest)
            fresh += self._held.pop(flight.digest, [])
        if fresh:
            self._write(fresh)

    def _write(self, flights: Sequence[UnitFlight]) -> None:
        if self.batch is None:
            self.batch = retry_on_db_error(lambda: new_batch(self.run.pk, self.endpoint.pk, self.model))
        batch, wanted = self.batch, {flight.unit: (flight.attempt_id, flight.digest) for flight in flights}

        def write() -> set[int]:
            with transaction.atomic():
                return put_in(batch, wanted, share=self.kept is not None)

        file = retry_on_db_error(write)
        for flight in flights:
            if flight.attempt_id in file:
                self.lines.append(request_line(f"attempt-{flight.attempt_id}", flight.call))
            del self._hands[flight.key]

    def hear_lines(self, lines: Sequence[BatchLine], replies: Mapping[str, JudgeReply]) -> None:
        """Hear the replies to the lines that have one and write what they come to. Lines come with their attempts,
        units, answers and questions."""
        given = {line: replies[line.custom_id] for line in lines if line.custom_id in replies}
        never = [line.attempt_id for line, reply in given.items() if reply.outcome is Outcome.NOT_SENT]
        heard = {line: reply for line, reply in given.items() if reply.outcome is not Outcome.NOT_SENT}
        retry_on_db_error(lambda: units.mark_unsent(never))
        found = [line.attempt.unit for line in heard]
        self.prepare(found)
        earlier, now = earlier_replies(found), time.monotonic()
        done: list[tuple[UnitFlight, JudgeReply]] = []
        strange: list[tuple[BatchLine, JudgeReply]] = []
        for line, reply in heard.items():
            unit = line.attempt.unit
            talk = self.talk_about(unit, earlier.get(unit.pk, {}))
            if talk.call is None or request_hash(talk.call, repeat=unit.repeat) != line.digest:
                strange.append((line, reply))
                continue
            flight = self.flight(unit, talk, line.attempt_id, now)
            flight.number, flight.digest = line.attempt.number, line.digest
            done.append((flight, reply))
        self._set_aside(strange)
        self._hands |= {flight.key: flight for flight, _ in done}
        if done:
            self._receive(done)
        going_on = [flight.unit for flight, _ in done if flight.key in self._hands]
        retry_on_db_error(lambda: units.lease_again(going_on))

    def _set_aside(self, strange: Sequence[tuple[BatchLine, JudgeReply]]) -> None:
        """Keep replies to requests that would be made otherwise now, such as after an update; their units are asked
        about again."""
        if not strange:
            return
        about = {"run": self.run.pk}
        log.warning("run %s: %d replies to requests no longer made", self.run.pk, len(strange), extra=about)
        at, lost = timezone.now(), Heard(Outcome.WRONG_CONTENT, {})
        rows = [reply_row(line.attempt_id, line.digest, r, lost, model=self.model, at=at) for line, r in strange]
        retry_on_db_error(lambda: insert_replies(Reply, rows, again=True))

    def _wants(self) -> int:
        """As many as fit, a chunk at a time: those that go into the batch need no place."""
        if not self.batches:
            return super()._wants()
        if self.full or time.monotonic() < self._dry_until or any(f.suspect for f in self._hands.values()):
            return 0
        return min(CHUNK, MOST_LINES - len(self.lines)) if len(self._hands) < CHUNK else 0

    def _queues(self) -> bool:
        """Nothing in hands means here that what was taken is in the batch."""
        if not self.batches:
            return super()._queues()
        return not self._stopping and not self.full and time.monotonic() >= self._dry_until
