"""Enqueues background tasks, requeues unfinished runs once a minute, and restarts a worker cluster whose heartbeat
stopped.

Losing, repeating or reordering a message changes no result. With ``django_q``, messages are rows of the same database,
visible when the caller's transaction commits. With ``local``, the calling process does the work after its transaction.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now
from django.utils.module_loading import import_string
from django_q.models import Schedule
from django_q.tasks import async_task

from evaluation.core.errors import UnknownName
from evaluation.extensions import features
from evaluation.models import Heartbeat, Preflight, ProcessRestart, Run, WorkUnit
from evaluation.worker import units
from evaluation.worker.serving import Child
from evaluation.worker.units import State, claimable, on_resting_endpoint

DRAIN = "evaluation.tasks.drain_run"
SWEEP = "evaluation.tasks.sweep_all"
BEAT = "evaluation.tasks.beat"


def enqueue_run(run_id: int) -> None:
    """Enqueue work on a run, after the current transaction."""
    enqueue_task(DRAIN, run_id)


def enqueue_task(task: str, object_id: int, *, seconds: int | None = None) -> None:
    """Enqueue a task, given as the dotted name of a function of one number; ``seconds`` overrides its time limit."""
    if settings.CONCORD_DISPATCHER == "django_q":
        options = {} if seconds is None else {"timeout": seconds}
        async_task(task, object_id, save=False, **options)
    elif settings.CONCORD_DISPATCHER == "local":
        transaction.on_commit(lambda: import_string(task)(object_id))
    else:
        raise UnknownName("dispatcher", settings.CONCORD_DISPATCHER, ["django_q", "local"])


def enqueue_heartbeat() -> None:
    enqueue_task(BEAT, 0)


def schedule_requeueing() -> None:
    """Schedule requeueing once a minute."""
    if settings.CONCORD_DISPATCHER == "django_q":
        Schedule.objects.get_or_create(
            name="concord sweep",
            defaults={"func": SWEEP, "schedule_type": Schedule.MINUTES, "minutes": 1, "repeats": -1},
        )


def requeue_stalled() -> list[int]:
    """Enqueue each running run that has claimable or stuck units and no active worker; their ids.

    Runs with an active worker are skipped: the worker enqueues them again, and further messages would pile up. Runs
    without open units are enqueued to be completed, and runs that a feature names, such as those with a due batch.
    Units of a cancelled run whose worker died are skipped here, because nobody will claim them again."""
    units.expire_leases_of_dead_workers()
    WorkUnit.objects.filter(units.lease_expired(), run__state=Run.State.CANCELLED).update(
        state=State.SKIPPED, reason="cancelled", lease_token=None, lease_until=None
    )
    units_of_run = WorkUnit.objects.filter(run_id=OuterRef("pk"))
    claimable_units = units_of_run.filter(claimable())
    leased = units_of_run.filter(state=State.LEASED).exclude(units.lease_expired())
    claimable_units = claimable_units.exclude(on_resting_endpoint())
    lapsed_units = units_of_run.filter(units.lease_expired()).exclude(on_resting_endpoint())
    open_units = units_of_run.filter(state__in=[State.TODO, *units.HELD_STATES])
    runs = Run.objects.filter(state=Run.State.RUNNING).exclude(Exists(leased))
    runs = runs.filter(Exists(claimable_units) | Exists(lapsed_units) | ~Exists(open_units))
    delayed_preflights = Preflight.objects.filter(run_id=OuterRef("pk"), retry_at__gt=Now())
    in_preflight = Run.objects.filter(state=Run.State.PREFLIGHT).exclude(Exists(delayed_preflights))
    feature_runs = [feature.due_runs() for feature in features() if feature.due_runs]
    ids = sorted(
        {pk for runs_due in (runs, in_preflight, *feature_runs) for pk in runs_due.values_list("pk", flat=True)}
    )
    for run_id in ids:
        enqueue_run(run_id)
    return ids


def heartbeat_is_fresh(host: str = "") -> bool:
    """Return whether a cluster (of the host, if named) recently executed its heartbeat task."""
    since = Now() - timedelta(seconds=settings.CONCORD_WORKER_TIMEOUT_SECONDS)
    beats = Heartbeat.objects.filter(seen_at__gte=since)
    return (beats.filter(host=host) if host else beats).exists()


log = logging.getLogger("concord.serve")

MAX_SECONDS_ALLOWED = 900


class Watchdog:
    """Restarts a wedged cluster; called by the supervisor. After each start the cluster has the full time-out, twice
    as much after each restart without a heartbeat since, because a busy machine may need longer to start it."""

    def __init__(self, cluster: Child) -> None:
        self.cluster = cluster
        self.started_at = time.monotonic()
        self.seconds_allowed = settings.CONCORD_WORKER_TIMEOUT_SECONDS

    def __call__(self) -> None:
        """Enqueue a heartbeat and stalled runs; restart the cluster if its last heartbeat is too old."""
        if not self.cluster.alive:
            # The supervisor already knows and will restart it.
            return
        try:
            fresh = heartbeat_is_fresh(settings.CONCORD_HOST)
            enqueue_heartbeat()
            requeue_stalled()
        except DatabaseError as error:
            # The workers wait for the database too, and a restart would not bring it back.
            log.warning("the watchdog cannot reach the database: %s", error)
            return
        finally:
            connection.close()
        if fresh:
            self.seconds_allowed = settings.CONCORD_WORKER_TIMEOUT_SECONDS
        elif time.monotonic() - self.started_at > self.seconds_allowed:
            silence = f"sent no heartbeat for {self.seconds_allowed} s"
            self.seconds_allowed = min(2 * self.seconds_allowed, MAX_SECONDS_ALLOWED)
            log.error("the cluster %s, restarting it", silence)
            self.cluster.restart()
            self.on_restart(self.cluster.name, silence)

    def on_restart(self, part: str, reason: str) -> None:
        """Record the restart of a child, and requeue its work at once."""
        if part == self.cluster.name:
            self.started_at = time.monotonic()
        record_restart(part, reason)


def record_restart(part: str, reason: str) -> None:
    """Record the restart of a part of ``serve`` for health checks, and requeue its work. Without a database, only log
    it."""
    try:
        ProcessRestart.objects.update_or_create(
            host=settings.CONCORD_HOST,
            part=part,
            defaults={"count": F("count") + 1, "reason": reason, "last_at": Now()},
            create_defaults={"reason": reason, "last_at": Now()},
        )
        requeue_stalled()
    except DatabaseError as error:
        log.warning("cannot record the restart: %s", error)
    finally:
        connection.close()
