"""The doorbell: functions that wake a worker, and the sweep, which rings every run that has something to do.
Losing, repeating or reordering a ring changes no result.

``django_q`` writes a message into the same database and, with the caller's transaction, becomes visible with the
work it is about. ``local`` lets the calling process do the work after its transaction.
"""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now
from django_q.models import Schedule
from django_q.tasks import async_task

from evaluation.core.errors import UnknownName
from evaluation.models import Preflight, Run, WorkUnit
from evaluation.work import units
from evaluation.work.plugins import extras
from evaluation.work.units import State, claimable, resting

DRAIN = "evaluation.tasks.drain_run"
SWEEP = "evaluation.tasks.sweep_all"
BEAT = "evaluation.tasks.beat"


def ring(run_id: int) -> None:
    """Wake a worker for a run, now (after the current transaction)."""
    _ring(DRAIN, run_id)


def ring_canary() -> None:
    """Ask the cluster for a sign of life."""
    _ring(BEAT, 0)


def ring_on_schedule() -> None:
    """Have every run with claimable units rung once a minute, whatever became of earlier rings."""
    if settings.CONCORD_DISPATCHER == "django_q":
        Schedule.objects.get_or_create(
            name="concord sweep",
            defaults={"func": SWEEP, "schedule_type": Schedule.MINUTES, "minutes": 1, "repeats": -1},
        )


def _ring(name: str, argument: int) -> None:
    if settings.CONCORD_DISPATCHER == "django_q":
        async_task(name, argument, save=False)
    elif settings.CONCORD_DISPATCHER == "local":
        module, function = name.rsplit(".", 1)
        transaction.on_commit(lambda: getattr(import_module(module), function)(argument))
    else:
        raise UnknownName("dispatcher", settings.CONCORD_DISPATCHER, ["django_q", "local"])


def sweep() -> list[int]:
    """Ring each running run that nobody works on although it has claimable or stuck units; their ids.

    A run in somebody's hands is left alone: its worker rings again by itself, and a second ring a minute would
    pile up messages that keep other runs waiting. A run without open units is rung too, so that it gets settled.
    So is one that an extra asks for, such as one with a batch to see to. Units of a cancelled run whose worker died
    are skipped here, because nobody will claim them again.
    """
    WorkUnit.objects.filter(units.lapsed(), run__state=Run.State.CANCELLED).update(
        state=State.SKIPPED, reason="cancelled", lease_token=None, lease_until=None
    )
    mine = WorkUnit.objects.filter(run_id=OuterRef("pk"))
    due = mine.filter(claimable())
    held = mine.filter(state=State.LEASED).exclude(units.lapsed())
    due = due.exclude(resting())
    lapsed = mine.filter(units.lapsed()).exclude(resting())
    waiting = mine.filter(state__in=[State.TODO, *units.HELD])
    runs = Run.objects.filter(state=Run.State.RUNNING).exclude(Exists(held))
    runs = runs.filter(Exists(due) | Exists(lapsed) | ~Exists(waiting))
    waits = Preflight.objects.filter(run_id=OuterRef("pk"), retry_at__gt=Now())
    checking = Run.objects.filter(state=Run.State.PREFLIGHT).exclude(Exists(waits))
    asked_for = [extra.due_runs() for extra in extras() if extra.due_runs]
    ids = sorted({pk for found in (runs, checking, *asked_for) for pk in found.values_list("pk", flat=True)})
    for run_id in ids:
        ring(run_id)
    return ids


def stalled_runs() -> list[int]:
    """Runs with claimable units of which none is in work although a worker should long have been at them."""
    mine = WorkUnit.objects.filter(run_id=OuterRef("pk"))
    quiet = Now() - timedelta(seconds=settings.CONCORD_WEDGED_SECONDS)
    runs = Run.objects.filter(state=Run.State.RUNNING, started_at__lt=quiet)
    runs = runs.filter(Exists(mine.filter(claimable()).exclude(resting())))
    runs = runs.exclude(Exists(mine.filter(state=State.LEASED).exclude(units.lapsed())))
    runs = runs.exclude(Exists(mine.filter(finished_at__gt=quiet)))
    return list(runs.values_list("pk", flat=True))
