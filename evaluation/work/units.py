"""A unit's life: claimed under a lease, finished once, given back, parked.

    blocked -> todo -> leased -> done | failed
                 ^        |
                 +--------+   given back, or the lease lapsed

Times are the database's, so that hosts with different clocks agree on leases. A claim raises ``fence``; whoever
finishes must still hold that fence, so a worker that comes back after its lease lapsed changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from evaluation.runs.models import Run
from evaluation.work.models import Attempt, Reply, WorkUnit

MAX_TRIES = 5
SUSPECT_TRIES = 2  # after so many claims that did not end, a unit is claimed alone
State = WorkUnit.State


def claimable() -> Q:
    """Units a worker may take now: waiting and due, or leased by somebody whose lease has lapsed."""
    due = Q(not_before__isnull=True) | Q(not_before__lte=Now())
    return (Q(state=State.TODO) & due) | Q(state=State.LEASED, lease_until__lt=Now(), tries__lt=MAX_TRIES)


def claim(
    run_id: int, kinds: Iterable[str], size: int, *, run_judge_id: int | None = None, suspects: bool = False
) -> list[WorkUnit]:
    """Take up to ``size`` units of a running run, and write the first attempt of each judge unit with the claim.

    ``tries`` counts before any call is made, so that a unit which kills its worker is counted all the same. Units
    whose claims repeatedly did not end are left out, or with ``suspects`` taken alone: who shares a batch with a
    unit that kills its worker must not be blamed for it.
    """
    token = uuid.uuid4()
    wanted = WorkUnit.objects.filter(claimable(), run_id=run_id, run__state=Run.State.RUNNING, kind__in=list(kinds))
    wanted = wanted.filter(tries__gte=SUSPECT_TRIES) if suspects else wanted.filter(tries__lt=SUSPECT_TRIES)
    if run_judge_id is not None:
        wanted = wanted.filter(run_judge_id=run_judge_id)
    with transaction.atomic():
        due = wanted.order_by("id").select_for_update(skip_locked=True, of=("self",)).values("pk")[:size]
        WorkUnit.objects.filter(pk__in=due).update(
            state=State.LEASED,
            lease_token=token,
            lease_until=Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS),
            fence=F("fence") + 1,
            tries=F("tries") + 1,
            not_before=None,
        )
        units = list(WorkUnit.objects.filter(lease_token=token).order_by("id"))
        Attempt.objects.bulk_create(
            Attempt(unit=unit, fence=unit.fence, round=unit.round, number=1)
            for unit in units
            if unit.kind == WorkUnit.Kind.JUDGE
        )
    return units


def held(unit: WorkUnit) -> QuerySet[WorkUnit]:
    """The unit's row, as long as this claim still holds it."""
    return WorkUnit.objects.filter(pk=unit.pk, fence=unit.fence, state=State.LEASED)


def finish(unit: WorkUnit) -> bool:
    """Mark the unit done and free the steps that wait for it; false when the claim was lost meanwhile.

    Call inside the transaction that writes the unit's results, before writing them.
    """
    if not held(unit).update(state=State.DONE, lease_token=None, lease_until=None, finished_at=Now(), reason=""):
        return False
    WorkUnit.objects.filter(needs_id=unit.pk, state=State.BLOCKED).update(state=State.TODO)
    return True


def fail(unit: WorkUnit, reason: str) -> bool:
    """Mark the unit failed for a reason; false when the claim was lost meanwhile."""
    return bool(
        held(unit).update(state=State.FAILED, lease_token=None, lease_until=None, finished_at=Now(), reason=reason)
    )


def extend(units: Sequence[WorkUnit]) -> None:
    """Heartbeat: prolong the leases that are still held."""
    until = Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS)
    for unit in units:
        held(unit).update(lease_until=until)


def give_back(unit: WorkUnit, *, after_seconds: float = 0) -> bool:
    """Return a claimed unit unharmed: its worker lived, so the try does not count towards a crash loop."""
    later = Now() + timedelta(seconds=after_seconds) if after_seconds else None
    return bool(held(unit).update(state=State.TODO, lease_token=None, lease_until=None, tries=0, not_before=later))


def mark_unsent(unit: WorkUnit) -> None:
    """Say that the attempt written with the claim was never sent, so that it cost nothing for certain."""
    attempt = Attempt.objects.filter(unit=unit, fence=unit.fence, number=1, reply__isnull=True).first()
    if attempt:
        Reply.objects.create(attempt=attempt, outcome="not_sent", cost=0)


def crash_looping() -> QuerySet[WorkUnit]:
    """Units whose claims never ended although they were tried often enough."""
    return WorkUnit.objects.filter(state=State.LEASED, lease_until__lt=Now(), tries__gte=MAX_TRIES)


def open_units(run_id: int) -> QuerySet[WorkUnit]:
    """Units of a run that are not finished."""
    return WorkUnit.objects.filter(run_id=run_id, state__in=[State.BLOCKED, State.TODO, State.LEASED])
