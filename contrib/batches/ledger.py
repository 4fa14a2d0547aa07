"""Batches in the database, and the judge step of a run whose calls go out in batches.

New calls are written into a file instead of being sent; the replies are processed like those of single calls. Repairs,
retries after transient faults, and calls that failed in batches twice are sent as single calls.

Only the worker that has claimed a batch changes it. Adding units locks its row, and so does ending it, so that no unit
stays in a batch that nobody polls any more."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from contrib.batches.models import BatchLine, JudgeBatch
from evaluation.judging.calls import JudgeCall, JudgeReply, ParsedReply
from evaluation.judging.prompt import request_hash
from evaluation.models import BatchState, Endpoint, Reply, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.scoring.judges import JudgeSession, JudgeUnitCall, earlier_replies
from evaluation.scoring.replies import insert_replies, reply_row
from evaluation.storage.statements import insert_values
from evaluation.worker import units
from evaluation.worker.database import retry_on_db_error

State = BatchState
OPEN_STATES = (State.PREPARING, State.UPLOADED, State.CREATING, State.SENT)
# Failed lines of a unit after which it is called singly.
MAX_FRUITLESS_LINES = 2
FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 5.0, 300.0


def open_batches() -> QuerySet[JudgeBatch]:
    """Return the batches that have not ended."""
    return JudgeBatch.objects.filter(state__in=OPEN_STATES)


def due_batches() -> QuerySet[JudgeBatch]:
    """Return the open batches that need attention and are not claimed."""
    free = Q(busy_until__isnull=True) | Q(busy_until__lt=Now())
    return open_batches().filter(free, Q(next_at__isnull=True) | Q(next_at__lte=Now()))


def claim_batch(batch: JudgeBatch) -> bool:
    """Claim a batch; false if another worker has it, or it is no longer due."""
    until = Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS + 3 * settings.CONCORD_CALL_SECONDS)
    claimed = bool(due_batches().filter(pk=batch.pk).update(busy_until=until, poll_count=batch.poll_count + 1))
    batch.refresh_from_db()
    return claimed


def release_batch(batch: JudgeBatch, *, after_seconds: float | None = None) -> None:
    """Release a claimed batch until ``after_seconds``, by default a pause that grows with each poll."""
    if after_seconds is None:
        after_seconds = min(FIRST_POLL_SECONDS * 1.5 ** min(batch.poll_count, 20), MAX_POLL_SECONDS)
    _claimed_row(batch).update(next_at=Now() + timedelta(seconds=after_seconds), busy_until=None)
    batch.refresh_from_db()


def update_batch(batch: JudgeBatch, **fields: object) -> bool:
    """Update a claimed batch and keep the claim; false if the claim was lost."""
    updated = bool(_claimed_row(batch).update(**fields))
    batch.refresh_from_db()
    return updated


def _claimed_row(batch: JudgeBatch) -> QuerySet[JudgeBatch]:
    """Return the batch's row while this claim holds."""
    return open_batches().filter(pk=batch.pk, busy_until=batch.busy_until)


def create_batch(run_id: int, endpoint_id: int, model: str) -> JudgeBatch:
    """Create and claim an empty batch."""
    batch = JudgeBatch(run_id=run_id, endpoint_id=endpoint_id, model=model)
    batch.save(force_insert=True)
    claim_batch(batch)
    return batch


def add_units(batch: JudgeBatch, requests: Mapping[WorkUnit, tuple[int, str]], *, share: bool) -> set[int]:
    """Add leased units to a batch by attempt and request digest; returns the attempts that belong into its file.

    With ``share``, a unit whose request is already out waits for that reply, in any batch of the run. Call inside a
    transaction. Idempotent: units that are in this batch already count."""
    digests = {digest for _, digest in requests.values()} if share else set()
    sent_lines = BatchLine.objects.filter(digest__in=digests, in_file=True, batch__run_id=batch.run_id)
    batch_by_digest = dict(
        sent_lines.filter(batch__state__in=OPEN_STATES).order_by("-id").values_list("digest", "batch_id")
    )
    ids = {batch.pk, *batch_by_digest.values()}
    open_ids = set(open_batches().filter(pk__in=ids).order_by("pk").select_for_update().values_list("pk", flat=True))
    batch_by_digest = {digest: pk for digest, pk in batch_by_digest.items() if pk in open_ids}
    leased = WorkUnit.objects.filter(pk__in=[u.pk for u in units.still_held(requests)], state=WorkUnit.State.LEASED)
    leased_ids = set(leased.values_list("pk", flat=True))
    rows, now = [], timezone.now()
    for unit, (attempt_id, digest) in requests.items():
        if unit.pk in leased_ids:
            shared_batch = batch_by_digest.get(digest) if share else None
            rows.append((shared_batch or batch.pk, attempt_id, digest, shared_batch is None, now))
            batch_by_digest.setdefault(digest, batch.pk)
    insert_values(BatchLine, ("batch_id", "attempt_id", "digest", "in_file", "created_at"), rows)
    units.mark_unsent(attempt_id for _, attempt_id, _, in_file, _ in rows if not in_file)
    WorkUnit.objects.filter(pk__in=leased_ids).update(
        state=WorkUnit.State.BATCHED, lease_token=None, lease_until=None, tries=0
    )
    file = BatchLine.objects.filter(
        batch=batch, in_file=True, attempt__in=[attempt for attempt, _ in requests.values()]
    )
    return set(file.values_list("attempt_id", flat=True))


def waiting_lines(batch: JudgeBatch) -> QuerySet[BatchLine]:
    """Return the batch's attempts whose units wait in it."""
    waits = Q(attempt__unit__state=WorkUnit.State.BATCHED, attempt__fence=F("attempt__unit__fence"))
    return BatchLine.objects.filter(waits, batch=batch)


def unanswered_lines(batch: JudgeBatch) -> QuerySet[BatchLine]:
    """Return the lines of the batch's file that have no reply yet and whose units wait for it."""
    return waiting_lines(batch).filter(in_file=True, attempt__reply__isnull=True).order_by("attempt_id")


def end_batch(batch: JudgeBatch, state: str, reason: str = "", *, unpaid: bool, after_seconds: float = 0.0) -> None:
    """End a batch and release every unit that waits in it, claimable after ``after_seconds``.

    ``unpaid``: lines without a reply were never run and cost nothing. Otherwise their cost is unknown, and they stay
    without a reply."""
    with transaction.atomic():
        if not _claimed_row(batch).update(
            state=state, reason=reason[:100], ended_at=Now(), busy_until=None, next_at=None
        ):
            return
        lines = BatchLine.objects.filter(batch=batch)
        if unpaid:
            units.mark_unsent(lines.filter(attempt__reply__isnull=True).values_list("attempt_id", flat=True))
        waiting_units = waiting_lines(batch).values("attempt__unit")
        units.give_back_all(WorkUnit.objects.filter(pk__in=waiting_units), after_seconds=after_seconds)
    batch.refresh_from_db()


def fruitless_units(work_units: Iterable[WorkUnit]) -> set[int]:
    """Return the units whose lines failed often enough in their current round. No query for first claims."""
    rounds = {unit.pk: unit.round for unit in work_units if unit.fence > 1}
    if not rounds:
        return set()
    successes = [Outcome.OK, Outcome.CACHED]
    lines = BatchLine.objects.filter(attempt__unit__in=rounds, in_file=True).exclude(batch__state=State.DROPPED)
    failed_lines = lines.exclude(attempt__in=Reply.objects.filter(outcome__in=successes).values("attempt"))
    rows = failed_lines.values_list("attempt__unit", "attempt__round").order_by().annotate(n=Count("id"))
    return {pk for pk, number, n in rows if number == rounds[pk] and n >= MAX_FRUITLESS_LINES}


log = logging.getLogger("concord.work")
MAX_LINES = 2000
MAX_BATCH_BYTES = 64_000_000
# Units claimed, or replies processed, at a time.
CHUNK = 200


@dataclass(kw_only=True)
class BatchSession(JudgeSession):
    """A worker's session for units whose judges share an endpoint and a model.

    ``batches`` is false if the endpoint no longer takes batches: calls are then sent singly, and only open batches are
    still read."""

    endpoint: Endpoint
    model: str
    # Encodes one call of the file.
    request_line: Callable[[str, JudgeCall], bytes]
    batches: bool = True
    # The batch that is being written.
    batch: JudgeBatch | None = None
    lines: list[bytes] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.lines) >= MAX_LINES or sum(map(len, self.lines)) >= MAX_BATCH_BYTES

    def send(self, flights: Sequence[JudgeUnitCall]) -> None:
        """Write new calls into the batch; send the others singly."""
        exhausted = retry_on_db_error(lambda: fruitless_units([flight.unit for flight in flights]))
        fresh = [f for f in flights if self.batches and not f.earlier and f.unit.pk not in exhausted]
        fresh_keys = {flight.key for flight in fresh}
        super().send([flight for flight in flights if flight.key not in fresh_keys])
        for flight in list(fresh):
            self._sent_digests.discard(flight.digest)
            fresh += self._duplicates.pop(flight.digest, [])
        if fresh:
            self._write(fresh)

    def _write(self, flights: Sequence[JudgeUnitCall]) -> None:
        if self.batch is None:
            self.batch = retry_on_db_error(lambda: create_batch(self.run.pk, self.endpoint.pk, self.model))
        batch, requests = self.batch, {flight.unit: (flight.attempt_id, flight.digest) for flight in flights}

        def write() -> set[int]:
            with transaction.atomic():
                return add_units(batch, requests, share=self.cache is not None)

        file = retry_on_db_error(write)
        for flight in flights:
            if flight.attempt_id in file:
                self.lines.append(self.request_line(f"attempt-{flight.attempt_id}", flight.call))
            del self._flights[flight.key]

    def receive_replies(self, lines: Sequence[BatchLine], replies: Mapping[str, JudgeReply]) -> None:
        """Process the replies to these lines. Lines come with their attempts, units, answers and questions."""
        received = {line: replies[line.custom_id] for line in lines if line.custom_id in replies}
        unsent_ids = [line.attempt_id for line, reply in received.items() if reply.outcome is Outcome.NOT_SENT]
        sent_replies = {line: reply for line, reply in received.items() if reply.outcome is not Outcome.NOT_SENT}
        retry_on_db_error(lambda: units.mark_unsent(unsent_ids))
        work_units = [line.attempt.unit for line in sent_replies]
        self.prepare(work_units)
        earlier, now = earlier_replies(work_units), time.monotonic()
        matched: list[tuple[JudgeUnitCall, JudgeReply]] = []
        mismatched: list[tuple[BatchLine, JudgeReply]] = []
        for line, reply in sent_replies.items():
            unit = line.attempt.unit
            talk = self.conversation_about(unit, earlier.get(unit.pk, {}))
            if talk.call is None or request_hash(talk.call, repeat=unit.repeat) != line.digest:
                mismatched.append((line, reply))
                continue
            flight = self.flight(unit, talk, line.attempt_id, now)
            flight.number, flight.digest = line.attempt.number, line.digest
            matched.append((flight, reply))
        self._store_mismatched(mismatched)
        self._flights |= {flight.key: flight for flight, _ in matched}
        if matched:
            self._receive(matched)
        unfinished = [flight.unit for flight, _ in matched if flight.key in self._flights]
        retry_on_db_error(lambda: units.lease_again(unfinished))

    def _store_mismatched(self, mismatched: Sequence[tuple[BatchLine, JudgeReply]]) -> None:
        """Store replies to requests that would be built differently now, for example after an update.

        Their units are called again."""
        if not mismatched:
            return
        log_fields = {"run": self.run.pk}
        log.warning("run %s: %d replies to outdated requests", self.run.pk, len(mismatched), extra=log_fields)
        at, unusable = timezone.now(), ParsedReply(Outcome.WRONG_CONTENT, {})
        rows = [
            reply_row(line.attempt_id, line.digest, r, unusable, model=self.model, received_at=at)
            for line, r in mismatched
        ]
        retry_on_db_error(lambda: insert_replies(Reply, rows, is_retry=True))

    def _claim_size(self) -> int:
        """Return the free lines, at most a chunk: calls in the batch need no slot at the endpoint."""
        if not self.batches:
            return super()._claim_size()
        if self.full or time.monotonic() < self._empty_until or any(f.suspect for f in self._flights.values()):
            return 0
        return min(CHUNK, MAX_LINES - len(self.lines)) if len(self._flights) < CHUNK else 0

    def _seconds_to_next_slot(self) -> float | None:
        """Return ``None`` while a batch is written, because its calls need no slot."""
        return None if self.batches else super()._seconds_to_next_slot()
