"""A unit's life: claimed under a lease, finished once, given back, parked.

    blocked -> todo -> leased -> done | failed
                 ^     |   ^ |      ^
                 +-----+   | v      |
                 +------- batched --+

A unit goes back to ``todo`` where it is given back or its lease lapsed; while it is ``batched`` its call is out in a
batch, and only who reads that batch's replies, or gives it up, moves it.

Times are the database's, so that hosts with different clocks agree on leases. A claim raises ``fence``; whoever
finishes must still hold that fence, so a worker that comes back after its lease lapsed changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from operator import attrgetter

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluation.models import Attempt, Reply, Run, WorkUnit
from evaluation.network.retrying import LONGEST_WAIT_IN_WORKER
from evaluation.storage.statements import insert_values
from evaluation.worker import leases

MAX_TRIES = 5
HELD = (WorkUnit.State.LEASED, WorkUnit.State.BATCHED)  # by a claim, or by the batch that the claim put it into
SUSPECT_TRIES = 2  # after so many claims that did not end, a unit is claimed alone
CALLED = (WorkUnit.Kind.ASK, WorkUnit.Kind.JUDGE)
State = WorkUnit.State


_COLUMNS = tuple(field.attname for field in WorkUnit._meta.concrete_fields if not field.primary_key)
_values = attrgetter(*_COLUMNS)
UNIT_BATCH = 1000


def insert_units(units: Iterable[WorkUnit], *, ignore_conflicts: bool = False) -> None:
    """Insert units by the thousand; they are not told their ids."""
    left = iter(units)
    while batch := list(islice(left, UNIT_BATCH)):
        insert_values(WorkUnit, _COLUMNS, [_values(unit) for unit in batch], ignore_conflicts=ignore_conflicts)


def lapsed() -> Q:
    """Units whose lease is over. One that ends later than any lease lasts is from before the clock was set back."""
    longest = timedelta(seconds=2 * settings.CONCORD_LEASE_SECONDS)
    return Q(state=State.LEASED) & (Q(lease_until__lt=Now()) | Q(lease_until__gt=Now() + longest))


def claimable() -> Q:
    """Units a worker may take now: waiting and due, or leased by somebody whose lease has lapsed."""
    due = Q(not_before__isnull=True) | Q(not_before__lte=Now())
    return (Q(state=State.TODO) & due) | (lapsed() & Q(tries__lt=MAX_TRIES))


def resting() -> Q:
    """Units whose judge's endpoint, or whose system, has asked for more time than a worker waits."""
    later = Now() + timedelta(seconds=LONGEST_WAIT_IN_WORKER)
    asked = Q(kind=WorkUnit.Kind.ASK, run__answer_set__system_version__system__cooldown_until__gt=later)
    return Q(run_judge__judge_version__endpoint__cooldown_until__gt=later) | asked


def claim(
    run_id: int,
    kinds: Iterable[str],
    size: int,
    *,
    run_judge_ids: Collection[int] | None = None,
    suspects: bool = False,
    related: Sequence[str] = (),
    shuffled: bool = False,
) -> list[WorkUnit]:
    """Take up to ``size`` units of a running run, with ``related`` rows of each, and write the first attempt of each
    unit that calls somebody with the claim (``first_attempts`` reads them).

    ``tries`` counts before any call is made, so that a unit which kills its worker is counted all the same. Units
    whose claims repeatedly did not end are left out, or with ``suspects`` taken alone: who shares a batch with a
    unit that kills its worker must not be blamed for it. ``shuffled`` takes any of them instead of the first.
    """
    token = leases.new_token()
    wanted = WorkUnit.objects.filter(claimable(), run_id=run_id, run__state=Run.State.RUNNING, kind__in=list(kinds))
    wanted = wanted.filter(tries__gte=SUSPECT_TRIES) if suspects else wanted.filter(tries__lt=SUSPECT_TRIES)
    if run_judge_ids is not None:
        wanted = wanted.filter(run_judge_id__in=run_judge_ids)
    with transaction.atomic():
        # Not one update with a sub-select: PostgreSQL may run that anew for each row, and then the limit does not hold.
        locked = wanted.order_by("?" if shuffled else "id").select_for_update(skip_locked=True, of=("self",))
        units = list(locked.select_related(*related)[:size] if related else locked[:size])
        if not units:
            return []
        WorkUnit.objects.filter(pk__in=[unit.pk for unit in units]).update(
            state=State.LEASED,
            lease_token=token,
            lease_until=Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS),
            fence=F("fence") + 1,
            tries=F("tries") + 1,
            not_before=None,
        )
        for unit in units:
            unit.state, unit.lease_token, unit.not_before = State.LEASED, token, None
            unit.fence, unit.tries = unit.fence + 1, unit.tries + 1
        now = timezone.now()
        called = [(u.pk, u.fence, u.round, 1, now) for u in units if u.kind in CALLED]
        insert_values(Attempt, ("unit_id", "fence", "round", "number", "created_at"), called)
    return units


def first_attempts(units: Iterable[WorkUnit]) -> dict[int, int]:
    """The ids of the attempts that were written with the units' present claims, by unit."""
    fences = {unit.pk: unit.fence for unit in units}
    rows = Attempt.objects.filter(unit__in=fences, number=1).values_list("unit_id", "fence", "pk")
    return {unit_id: pk for unit_id, fence, pk in rows if fences[unit_id] == fence}


def held(unit: WorkUnit) -> QuerySet[WorkUnit]:
    """The unit's row, as long as this claim still holds it."""
    return WorkUnit.objects.filter(pk=unit.pk, fence=unit.fence, state__in=HELD)


def still_held(units: Iterable[WorkUnit]) -> list[WorkUnit]:
    """Those of the units whose present claims still hold. Their rows stay locked until the transaction ends; call
    inside one."""
    fences = {unit.pk: unit.fence for unit in units}
    rows = WorkUnit.objects.filter(pk__in=fences, state__in=HELD).order_by("pk").select_for_update()
    ours = {pk for pk, fence in rows.values_list("pk", "fence") if fences[pk] == fence}
    return [unit for unit in units if unit.pk in ours]


def end(reasons: Mapping[WorkUnit, str]) -> list[WorkUnit]:
    """Mark units done, those with a reason failed for it, and free the steps that wait for those that are done; the
    units that were still held, which alone were changed.

    Call inside the transaction that writes the units' results, before writing them.
    """
    kept = still_held(reasons) if reasons else []
    by_reason: dict[str, list[int]] = {}
    for unit in kept:
        by_reason.setdefault(reasons[unit], []).append(unit.pk)
    for reason, ids in by_reason.items():
        state = State.FAILED if reason else State.DONE
        WorkUnit.objects.filter(pk__in=ids).update(
            state=state, lease_token=None, lease_until=None, finished_at=Now(), reason=reason
        )
    if done := by_reason.get(""):
        WorkUnit.objects.filter(needs_id__in=done, state=State.BLOCKED).update(state=State.TODO)
    return kept


def extend(units: Sequence[WorkUnit]) -> None:
    """Heartbeat: prolong the leases that are still held."""
    until = Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS)
    with transaction.atomic():
        WorkUnit.objects.filter(pk__in=[unit.pk for unit in still_held(units)]).update(lease_until=until)


def lease_again(units: Iterable[WorkUnit]) -> None:
    """Take in hand those of the units whose batch was read and whose conversation goes on by single calls."""
    lease = {
        "lease_token": leases.new_token(),
        "lease_until": Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS),
    }
    with transaction.atomic():
        kept = [unit.pk for unit in still_held(units)]
        WorkUnit.objects.filter(pk__in=kept, state=State.BATCHED).update(state=State.LEASED, tries=1, **lease)


def let_lapse_of_the_gone() -> int:
    """End the leases of processes of this machine that are no more, whose units others would wait for in vain; how
    many units. Their tries stay counted: one of them may have killed its worker."""
    if not (here := leases.tokens_from_here()):
        return 0
    held = WorkUnit.objects.filter(state=State.LEASED, lease_until__gt=Now())
    tokens = held.filter(lease_token__range=here).order_by().values_list("lease_token", flat=True).distinct()
    gone = [token for token in tokens if token and leases.is_gone(token)]
    return held.filter(lease_token__in=gone).update(lease_until=Now() - timedelta(seconds=1)) if gone else 0


def let_all_lapse() -> int:
    """End every lease, in a database that was restored: who held them works on another one. How many units."""
    return WorkUnit.objects.filter(state=State.LEASED).update(lease_until=Now() - timedelta(seconds=1))


def give_back(unit: WorkUnit, *, after_seconds: float = 0) -> bool:
    """Return a claimed unit unharmed; see :func:`give_all_back`."""
    return bool(give_all_back([unit], after_seconds=after_seconds))


def give_all_back(units: Iterable[WorkUnit], *, after_seconds: float = 0) -> list[WorkUnit]:
    """Return claimed units unharmed: their worker lived, so the try does not count towards a crash loop. Not to be
    taken before ``after_seconds`` have passed; those of a cancelled run are skipped. The units that were still held.
    """
    later = Now() + timedelta(seconds=after_seconds) if after_seconds else None
    free = {"lease_token": None, "lease_until": None, "tries": 0}
    units = list(units)
    if not units:
        return []
    with transaction.atomic():
        kept = still_held(units)
        rows = WorkUnit.objects.filter(pk__in=[unit.pk for unit in kept])
        cancelled = rows.filter(run__state=Run.State.CANCELLED).values_list("pk", flat=True)
        rows.filter(pk__in=list(cancelled)).update(state=State.SKIPPED, reason="cancelled", **free)
        rows.filter(state__in=HELD).update(state=State.TODO, not_before=later, **free)
    return kept


def mark_unsent(attempts: Iterable[int]) -> None:
    """Say that attempts written with a claim were never sent, so that they cost nothing for certain."""
    Reply.objects.bulk_create(
        [Reply(attempt_id=pk, outcome="not_sent", cost=0) for pk in attempts], ignore_conflicts=True
    )


def crash_looping() -> QuerySet[WorkUnit]:
    """Units whose claims never ended although they were tried often enough."""
    return WorkUnit.objects.filter(lapsed(), tries__gte=MAX_TRIES)


def open_units(run_id: int) -> QuerySet[WorkUnit]:
    """Units of a run that are not finished."""
    return WorkUnit.objects.filter(run_id=run_id, state__in=[State.BLOCKED, State.TODO, *HELD])
