"""The ledger's side of batches: which are open, whose turn it is to see to one, and what becomes of its units.

A batch is changed by whoever has its turn alone, but for the units that are put into it: that locks its row, and so
does its end, so that no unit is left in a batch that nobody looks at any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluation.judging.calls import Outcome
from evaluation.models import BatchLine, JudgeBatch, Reply, WorkUnit
from evaluation.storage import bulk
from evaluation.work import units

State = JudgeBatch.State
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
    bulk.insert(BatchLine, ("batch_id", "attempt_id", "digest", "in_file", "created_at"), rows)
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
