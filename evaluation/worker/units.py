"""The life cycle of a unit: claimed under a lease, finished once, given back, or failed after crashes.

    blocked -> todo -> leased -> done | failed
                 ^     |   ^ |      ^
                 +-----+   | v      |
                 +------- batched --+

A unit returns to ``todo`` when it is given back or its lease expires. While it is ``batched``, its call is in a batch,
and only the worker that reads or abandons that batch moves it.

Times are the database's, so that hosts with different clocks agree on leases. A claim raises ``fence``; a result is
accepted only with the current fence, so that a worker with an expired lease changes nothing."""

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
from evaluation.network.retrying import MAX_WORKER_WAIT_SECONDS
from evaluation.storage.statements import insert_values
from evaluation.worker import leases

MAX_TRIES = 5
# Held by a claim, or by the batch that the claim put it into.
HELD_STATES = (WorkUnit.State.LEASED, WorkUnit.State.BATCHED)
# After so many claims that did not end, a unit is claimed alone.
SUSPECT_TRIES = 2
CALLING_KINDS = (WorkUnit.Kind.ASK, WorkUnit.Kind.JUDGE)
State = WorkUnit.State


_COLUMNS = tuple(field.attname for field in WorkUnit._meta.concrete_fields if not field.primary_key)
_values = attrgetter(*_COLUMNS)
UNIT_BATCH = 1000


def insert_units(units: Iterable[WorkUnit], *, ignore_conflicts: bool = False) -> None:
    """Insert units by the thousand, without loading their ids."""
    remaining = iter(units)
    while batch := list(islice(remaining, UNIT_BATCH)):
        insert_values(WorkUnit, _COLUMNS, [_values(unit) for unit in batch], ignore_conflicts=ignore_conflicts)


def lease_expired() -> Q:
    """Units with an expired lease. A lease that ends too far in the future dates from before the clock was set back."""
    longest = timedelta(seconds=2 * settings.CONCORD_LEASE_SECONDS)
    return Q(state=State.LEASED) & (Q(lease_until__lt=Now()) | Q(lease_until__gt=Now() + longest))


def claimable() -> Q:
    """Units that a worker may claim: waiting and due, or with an expired lease."""
    due = Q(not_before__isnull=True) | Q(not_before__lte=Now())
    return (Q(state=State.TODO) & due) | (lease_expired() & Q(tries__lt=MAX_TRIES))


def on_resting_endpoint() -> Q:
    """Units whose endpoint or system is cooling down for longer than a worker waits."""
    wait_until = Now() + timedelta(seconds=MAX_WORKER_WAIT_SECONDS)
    collecting = Q(kind=WorkUnit.Kind.ASK, run__answer_set__system_version__system__cooldown_until__gt=wait_until)
    return Q(run_judge__judge_version__endpoint__cooldown_until__gt=wait_until) | collecting


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
    """Claim up to ``size`` units of a running run, with ``related`` rows. Records the first attempt of each unit that
    makes calls (read by ``first_attempts``).

    ``tries`` is raised before any call, so that a unit which crashes its worker is counted. Units whose claims
    repeatedly did not end are left out, or claimed alone with ``suspects``, so that others in the batch are not blamed.
    ``shuffled`` claims any units instead of the first."""
    token = leases.new_token()
    candidates = WorkUnit.objects.filter(claimable(), run_id=run_id, run__state=Run.State.RUNNING, kind__in=list(kinds))
    candidates = candidates.filter(tries__gte=SUSPECT_TRIES) if suspects else candidates.filter(tries__lt=SUSPECT_TRIES)
    if run_judge_ids is not None:
        candidates = candidates.filter(run_judge_id__in=run_judge_ids)
    with transaction.atomic():
        # Not an update with a sub-select: PostgreSQL may evaluate that per row, and then the limit does not hold.
        locked = candidates.order_by("?" if shuffled else "id").select_for_update(skip_locked=True, of=("self",))
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
        attempt_rows = [(u.pk, u.fence, u.round, 1, now) for u in units if u.kind in CALLING_KINDS]
        insert_values(Attempt, ("unit_id", "fence", "round", "number", "created_at"), attempt_rows)
    return units


def first_attempts(units: Iterable[WorkUnit]) -> dict[int, int]:
    """The ids of the attempts recorded with the units' current claims, by unit."""
    fences = {unit.pk: unit.fence for unit in units}
    rows = Attempt.objects.filter(unit__in=fences, number=1).values_list("unit_id", "fence", "pk")
    return {unit_id: pk for unit_id, fence, pk in rows if fences[unit_id] == fence}


def still_held(units: Iterable[WorkUnit]) -> list[WorkUnit]:
    """The units whose current claims still hold. Locks their rows until the transaction ends; call inside one."""
    fences = {unit.pk: unit.fence for unit in units}
    rows = WorkUnit.objects.filter(pk__in=fences, state__in=HELD_STATES).order_by("pk").select_for_update()
    held_ids = {pk for pk, fence in rows.values_list("pk", "fence") if fences[pk] == fence}
    return [unit for unit in units if unit.pk in held_ids]


def end(reasons: Mapping[WorkUnit, str]) -> list[WorkUnit]:
    """Mark units done, or failed with their reason, and free the units that wait for them. Returns the units that were
    still held; only those are changed.

    Call inside the transaction that writes the units' results, before writing them."""
    ended = still_held(reasons) if reasons else []
    by_reason: dict[str, list[int]] = {}
    for unit in ended:
        by_reason.setdefault(reasons[unit], []).append(unit.pk)
    for reason, ids in by_reason.items():
        state = State.FAILED if reason else State.DONE
        WorkUnit.objects.filter(pk__in=ids).update(
            state=state, lease_token=None, lease_until=None, finished_at=Now(), reason=reason
        )
    if done := by_reason.get(""):
        WorkUnit.objects.filter(needs_id__in=done, state=State.BLOCKED).update(state=State.TODO)
    return ended


def extend(units: Sequence[WorkUnit]) -> None:
    """Extend the leases that are still held."""
    until = Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS)
    with transaction.atomic():
        WorkUnit.objects.filter(pk__in=[unit.pk for unit in still_held(units)]).update(lease_until=until)


def lease_again(units: Iterable[WorkUnit]) -> None:
    """Lease units whose batch was read and whose conversation continues with single calls."""
    lease = {
        "lease_token": leases.new_token(),
        "lease_until": Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS),
    }
    with transaction.atomic():
        unit_ids = [unit.pk for unit in still_held(units)]
        WorkUnit.objects.filter(pk__in=unit_ids, state=State.BATCHED).update(state=State.LEASED, tries=1, **lease)


def expire_leases_of_dead_workers() -> int:
    """End the leases of dead processes of this machine; the number of units. Their tries stay counted, because one of
    the units may have crashed its worker."""
    if not (token_range := leases.local_token_range()):
        return 0
    leased = WorkUnit.objects.filter(state=State.LEASED, lease_until__gt=Now())
    tokens = leased.filter(lease_token__range=token_range).order_by().values_list("lease_token", flat=True).distinct()
    dead_tokens = [token for token in tokens if token and leases.is_dead(token)]
    return (
        leased.filter(lease_token__in=dead_tokens).update(lease_until=Now() - timedelta(seconds=1))
        if dead_tokens
        else 0
    )


def expire_all_leases() -> int:
    """End every lease in a restored database, because the holders use another one; the number of units."""
    return WorkUnit.objects.filter(state=State.LEASED).update(lease_until=Now() - timedelta(seconds=1))


def give_back(unit: WorkUnit, *, after_seconds: float = 0) -> bool:
    return bool(give_back_all([unit], after_seconds=after_seconds))


def give_back_all(units: Iterable[WorkUnit], *, after_seconds: float = 0) -> list[WorkUnit]:
    """Give back claimed units; those that were still held. Their worker lived, so the try does not count towards a
    crash loop. They are due after ``after_seconds``; units of a cancelled run are skipped."""
    not_before = Now() + timedelta(seconds=after_seconds) if after_seconds else None
    released = {"lease_token": None, "lease_until": None, "tries": 0}
    units = list(units)
    if not units:
        return []
    with transaction.atomic():
        given_back = still_held(units)
        rows = WorkUnit.objects.filter(pk__in=[unit.pk for unit in given_back])
        cancelled = rows.filter(run__state=Run.State.CANCELLED).values_list("pk", flat=True)
        rows.filter(pk__in=list(cancelled)).update(state=State.SKIPPED, reason="cancelled", **released)
        rows.filter(state__in=HELD_STATES).update(state=State.TODO, not_before=not_before, **released)
    return given_back


def mark_unsent(attempts: Iterable[int]) -> None:
    """Record that attempts were never sent, so that they certainly cost nothing."""
    Reply.objects.bulk_create(
        [Reply(attempt_id=pk, outcome="not_sent", cost=0) for pk in attempts], ignore_conflicts=True
    )


def crash_looping() -> QuerySet[WorkUnit]:
    """Units whose claims never ended, with too many tries."""
    return WorkUnit.objects.filter(lease_expired(), tries__gte=MAX_TRIES)


def open_units(run_id: int) -> QuerySet[WorkUnit]:
    """Units of a run that are not finished."""
    return WorkUnit.objects.filter(run_id=run_id, state__in=[State.BLOCKED, State.TODO, *HELD_STATES])
