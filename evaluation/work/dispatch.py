"""The doorbell: two functions that wake a worker. Losing, repeating or reordering a ring changes no result.

``django_q`` writes a message into the same database and, with the caller's transaction, becomes visible with the
work it is about. ``local`` lets the calling process do the work after its transaction.
"""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.db import transaction
from django_q.models import Schedule
from django_q.tasks import async_task

from evaluation.core.errors import UnknownName

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
