"""Whether all is well: what ``healthcheck`` says in sentences and ``/readyz`` in codes, which tell no secrets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now
from django.utils import timezone

from evaluation.extensions import features
from evaluation.models import AuditEvent, Endpoint, ProcessRestart, Run, System, WorkUnit
from evaluation.storage import append_only, guards
from evaluation.worker import units
from evaluation.worker.database import TRIAL_SECONDS, is_short_of_space, try_writing, unavailable
from evaluation.worker.dispatch import heartbeat_is_fresh
from evaluation.worker.units import State, claimable, resting

BACKUP = "backup_taken"  # the verb of the audit event


class Weight(Enum):
    """What follows from a finding: the site cannot serve people, somebody has to see to it, or it is good to know."""

    DOWN = 2
    BAD = 1
    NOTE = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as always: a code for programs and a sentence for operators."""

    code: str
    text: str
    weight: Weight = Weight.BAD

    @property
    def serious(self) -> bool:
        """Whether the site cannot serve people."""
        return self.weight is Weight.DOWN


def examine(host: str = "", *, trial_every: float = 0) -> list[Finding]:
    """Everything that is found, the worst first; nothing is raised. ``host`` names the one whose cluster is asked for.

    :param trial_every: seconds within which one writing by anybody is enough.
    """
    found: list[Finding] = []
    try:
        found += _unusable(trial_every)
        if not found:
            found += [one for look in LOOKS for one in look()]
            if not heartbeat_is_fresh(host):
                silence = f"no heartbeat of a cluster in the last {settings.CONCORD_WEDGED_SECONDS} s"
                found.append(Finding("no_cluster", silence))
    except DatabaseError as error:
        found.append(_failed(error))
        connection.close()
    return sorted(found, key=lambda one: -one.weight.value)


def _failed(error: DatabaseError) -> Finding:
    code = unavailable(error) or "database_error"
    return Finding(code, f"the database takes no reading or writing ({code}): {error}", Weight.DOWN)


def _unusable(trial_every: float) -> Iterator[Finding]:
    executor = MigrationExecutor(connection)
    if left := executor.migration_plan(executor.loader.graph.leaf_nodes()):
        yield Finding("not_migrated", f"{len(left)} migrations are not applied: run migrate", Weight.DOWN)
    else:
        try_writing(trial_every)


def _disk() -> Iterator[Finding]:
    if is_short_of_space():
        least = settings.CONCORD_RESERVE_MEGABYTES
        yield Finding("disk_short", f"less than {least} MB are free where the database is; runs pause")


def _work() -> Iterator[Finding]:
    for run_id in stalled_runs():
        yield Finding("run_stalled", f"run {run_id} has claimable units and nobody works on them")
    for problem in [problem for feature in features() if feature.problems for problem in feature.problems()]:
        yield Finding("extra", problem)


def _rules() -> Iterator[Finding]:
    for table in append_only.missing():
        yield Finding("triggers_missing", f"append-only triggers are missing on {table}")
    for name in guards.missing():
        yield Finding("guard_missing", f"guard {name} is missing")


def _backup() -> Iterator[Finding]:
    """The age of the last backup, where an operator set one."""
    if not settings.CONCORD_BACKUP_HOURS:
        return
    since = timezone.now() - timedelta(hours=settings.CONCORD_BACKUP_HOURS)
    if not AuditEvent.objects.filter(verb=BACKUP, created_at__gte=since).exists():
        yield Finding("backup_old", f"no backup was taken in the last {settings.CONCORD_BACKUP_HOURS} hours")


def _endpoints() -> Iterator[Finding]:
    for table in (Endpoint, System):
        for one in table._default_manager.exclude(down_since=None):
            told = f"has not answered since {one.down_since:%F %T %Z} ({one.fault}); it is called again from"
            yield Finding("endpoint_down", f"{_called(one)} {told} {one.cooldown_until:%F %T %Z} on", Weight.NOTE)
        for one in table._default_manager.filter(cooldown_until__gt=Now(), down_since=None):
            until = f"is left alone until {one.cooldown_until:%F %T %Z}"
            yield Finding("endpoint_resting", f"{_called(one)} {until}", Weight.NOTE)


def _called(one: Endpoint | System) -> str:
    return f"{one._meta.model_name} {one.name}"


def _restarts() -> Iterator[Finding]:
    for row in ProcessRestart.objects.filter(last_at__gte=Now() - timedelta(days=1)).order_by("host", "part"):
        when = f"was started again at {row.last_at:%F %T %Z}, {row.count} times so far"
        yield Finding("restarted", f"{row.part} of {row.host} {when}: {row.reason}", Weight.NOTE)


LOOKS: tuple[Callable[[], Iterator[Finding]], ...] = (_disk, _work, _rules, _backup, _endpoints, _restarts)


def stalled_runs() -> list[int]:
    """Runs with claimable units of which none is in work although a worker should long have been at them."""
    mine = WorkUnit.objects.filter(run_id=OuterRef("pk"))
    quiet = Now() - timedelta(seconds=settings.CONCORD_WEDGED_SECONDS)
    runs = Run.objects.filter(state=Run.State.RUNNING, started_at__lt=quiet)
    runs = runs.filter(Exists(mine.filter(claimable()).exclude(resting())))
    runs = runs.exclude(Exists(mine.filter(state=State.LEASED).exclude(units.lapsed())))
    runs = runs.exclude(Exists(mine.filter(finished_at__gt=quiet)))
    return list(runs.values_list("pk", flat=True))


_examining = threading.Lock()
_last: tuple[float, list[Finding]] = (float("-inf"), [Finding("not_examined", "nobody has looked yet", Weight.DOWN)])


def readiness() -> list[Finding]:
    """What :func:`examine` found at most ten seconds ago. Whoever asks while a look is being taken hears of the one
    before, so that no more than one request waits for a database that does not answer."""
    global _last
    if time.monotonic() - _last[0] > TRIAL_SECONDS and _examining.acquire(blocking=False):
        try:
            _last = (time.monotonic(), examine(trial_every=TRIAL_SECONDS))
        finally:
            _examining.release()
    return _last[1]
