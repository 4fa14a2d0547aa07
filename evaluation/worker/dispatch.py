"""The doorbell, which wakes a worker; the sweep, which rings every run that has something to do; and the watchdog that
restarts a cluster whose heartbeat is not to be heard.

Losing, repeating or reordering a ring changes no result. ``django_q`` writes a message into the same database and, with
the caller's transaction, becomes visible with the work it is about. ``local`` lets the calling process do the work
after its transaction.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from importlib import import_module

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now
from django_q.models import Schedule
from django_q.tasks import async_task

from evaluation.core.errors import UnknownName
from evaluation.extensions import features
from evaluation.models import Heartbeat, Preflight, ProcessRestart, Run, WorkUnit
from evaluation.worker import units
from evaluation.worker.serving import Child
from evaluation.worker.units import State, claimable, resting

DRAIN = "evaluation.tasks.drain_run"
SWEEP = "evaluation.tasks.sweep_all"
BEAT = "evaluation.tasks.beat"


def ring(run_id: int) -> None:
    """Wake a worker for a run, now (after the current transaction)."""
    _ring(DRAIN, run_id)


def ring_for(task: str, about: int, *, seconds: int | None = None) -> None:
    """Wake a worker for a task, the dotted name of a function that takes one number; ``seconds`` is how long it may
    take where that is more than usual."""
    _ring(task, about, seconds)


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


def _ring(name: str, argument: int, seconds: int | None = None) -> None:
    if settings.CONCORD_DISPATCHER == "django_q":
        longer = {} if seconds is None else {"timeout": seconds}
        async_task(name, argument, save=False, **longer)
    elif settings.CONCORD_DISPATCHER == "local":
        module, function = name.rsplit(".", 1)
        transaction.on_commit(lambda: getattr(import_module(module), function)(argument))
    else:
        raise UnknownName("dispatcher", settings.CONCORD_DISPATCHER, ["django_q", "local"])


def sweep() -> list[int]:
    """Ring each running run that nobody works on although it has claimable or stuck units; their ids.

    A run in somebody's hands is left alone: its worker rings again by itself, and a second ring a minute would
    pile up messages that keep other runs waiting. A run without open units is rung too, so that it gets settled.
    So is one that a feature asks for, such as one with a batch to see to. Units of a cancelled run whose worker died
    are skipped here, because nobody will claim them again.
    """
    units.let_lapse_of_the_gone()
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
    asked_for = [feature.due_runs() for feature in features() if feature.due_runs]
    ids = sorted({pk for found in (runs, checking, *asked_for) for pk in found.values_list("pk", flat=True)})
    for run_id in ids:
        ring(run_id)
    return ids


def heartbeat_is_fresh(host: str = "") -> bool:
    """Whether a cluster (of the host, if named) executed its canary lately."""
    since = Now() - timedelta(seconds=settings.CONCORD_WEDGED_SECONDS)
    beats = Heartbeat.objects.filter(seen_at__gte=since)
    return (beats.filter(host=host) if host else beats).exists()


log = logging.getLogger("concord.serve")


class Watchdog:
    """Called by the supervisor. A cluster gets the full silence time after each start before it counts as wedged."""

    def __init__(self, cluster: Child) -> None:
        self.cluster = cluster
        self.since = time.monotonic()

    def __call__(self) -> None:
        """One look: ring the canary and idle runs, and restart the cluster where the last sign of life is too old."""
        if not self.cluster.alive:
            return  # its end was told, it waits to be started
        try:
            silent = time.monotonic() - self.since > settings.CONCORD_WEDGED_SECONDS and not heartbeat_is_fresh(
                settings.CONCORD_HOST
            )
            ring_canary()
            sweep()
        except DatabaseError as error:
            # The database is away: the workers wait for it too, and a restart would not bring it back.
            log.warning("watchdog cannot reach the database: %s", error)
            return
        finally:
            connection.close()
        if silent:
            silence = f"gave no sign of life for {settings.CONCORD_WEDGED_SECONDS} s"
            log.error("the cluster %s, restarting it", silence)
            self.cluster.restart()
            self.told(self.cluster.name, silence)

    def told(self, part: str, reason: str) -> None:
        """A child was started again. What it had in hand is taken up at once."""
        if part == self.cluster.name:
            self.since = time.monotonic()
        note_restart(part, reason)


def note_restart(part: str, reason: str) -> None:
    """Keep in mind for health checks that a part of ``serve`` ended, and free what it held; without a database the log
    alone says so."""
    try:
        ProcessRestart.objects.update_or_create(
            host=settings.CONCORD_HOST,
            part=part,
            defaults={"count": F("count") + 1, "reason": reason, "last_at": Now()},
            create_defaults={"reason": reason, "last_at": Now()},
        )
        sweep()
    except DatabaseError as error:
        log.warning("the restart could not be noted: %s", error)
    finally:
        connection.close()
