"""Health checks: sentences for ``healthcheck``, and codes without secrets for ``/readyz``."""

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
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils import timezone

from evaluation.extensions import features
from evaluation.models import AuditEvent, Endpoint, Job, ProcessRestart, Run, System, WorkUnit
from evaluation.storage import append_only, guards
from evaluation.storage.versions import refuse_newer_database
from evaluation.worker import jobs, units
from evaluation.worker.database import TRIAL_SECONDS, is_short_of_space, probe_write, unavailable_reason
from evaluation.worker.dispatch import heartbeat_is_fresh
from evaluation.worker.host_settings import differing_settings, record_host
from evaluation.worker.units import State, claimable, on_resting_endpoint

# The verb of the audit event.
BACKUP = "backup_taken"


class Severity(Enum):
    """The severity of an issue: the site is down, an operator has to act, or it is a note."""

    DOWN = 2
    BAD = 1
    NOTE = 0


@dataclass(frozen=True, slots=True)
class HealthIssue:
    """A health issue: a code for programs and a sentence for operators."""

    code: str
    text: str
    severity: Severity = Severity.BAD

    @property
    def serious(self) -> bool:
        """Return whether the site is down."""
        return self.severity is Severity.DOWN


def find_issues(host: str = "", *, probe_interval: float = 0) -> list[HealthIssue]:
    """All issues, most severe first; never raises. ``host`` names the host whose cluster must be alive.

    :param probe_interval: seconds within which one probe write by any process is enough."""
    issues: list[HealthIssue] = []
    try:
        issues += _database_issues(probe_interval)
        if not issues:
            record_host()
            issues += [issue for check in CHECKS for issue in check()]
            if not heartbeat_is_fresh(host):
                silence = f"no worker heartbeat in the last {settings.CONCORD_WORKER_TIMEOUT_SECONDS} s"
                issues.append(HealthIssue("no_cluster", silence))
    except DatabaseError as error:
        issues.append(_database_failure(error))
        connection.close()
    return sorted(issues, key=lambda issue: -issue.severity.value)


def _database_failure(error: DatabaseError) -> HealthIssue:
    code = unavailable_reason(error) or "database_error"
    return HealthIssue(code, f"the database cannot be read or written ({code}): {error}", Severity.DOWN)


def _database_issues(probe_interval: float) -> Iterator[HealthIssue]:
    refuse_newer_database(connection)
    executor = MigrationExecutor(connection)
    if unapplied := executor.migration_plan(executor.loader.graph.leaf_nodes()):
        yield HealthIssue("not_migrated", f"{len(unapplied)} migrations are not applied: run migrate", Severity.DOWN)
    else:
        probe_write(probe_interval)


def _disk_issues() -> Iterator[HealthIssue]:
    if is_short_of_space():
        least = settings.CONCORD_MIN_FREE_DISK_MB
        yield HealthIssue("disk_short", f"less than {least} MB are free on the database's disk; runs pause")


def _host_issues() -> Iterator[HealthIssue]:
    for name, hosts in differing_settings():
        yield HealthIssue("hosts_differ", f"{name} differs between hosts ({hosts}); use one value and restart them")


def _run_issues() -> Iterator[HealthIssue]:
    for run_id in stalled_runs():
        yield HealthIssue("run_stalled", f"run {run_id} has claimable units, but no worker processes them")
    for problem in [problem for feature in features() if feature.problems for problem in feature.problems()]:
        yield HealthIssue("extra", problem)


def _job_issues() -> Iterator[HealthIssue]:
    quiet = Now() - timedelta(seconds=settings.CONCORD_WORKER_TIMEOUT_SECONDS)
    for job in jobs.due().filter(Q(until=None) | Q(until__lt=quiet), next_at__lt=quiet):
        yield HealthIssue("job_stalled", f"job {job} is due, but no worker processes it")
    for job in Job.objects.filter(state=Job.State.STOPPED, problem=jobs.FAILED):
        yield HealthIssue("job_failed", f"job {job} failed {job.attempts} times; see the log of its workers")


def _guard_issues() -> Iterator[HealthIssue]:
    for table in append_only.tables_without_triggers():
        yield HealthIssue("triggers_missing", f"append-only triggers are missing on {table}")
    for name in guards.missing_guards():
        yield HealthIssue("guard_missing", f"guard {name} is missing")


def _backup_issues() -> Iterator[HealthIssue]:
    """An issue if the last backup is too old, where an operator set a limit."""
    if not settings.CONCORD_BACKUP_HOURS:
        return
    since = timezone.now() - timedelta(hours=settings.CONCORD_BACKUP_HOURS)
    if not AuditEvent.objects.filter(verb=BACKUP, created_at__gte=since).exists():
        yield HealthIssue("backup_old", f"no backup in the last {settings.CONCORD_BACKUP_HOURS} hours")


def _endpoint_issues() -> Iterator[HealthIssue]:
    for table in (Endpoint, System):
        for endpoint in table._default_manager.exclude(down_since=None):
            outage = f"has not responded since {endpoint.down_since:%F %T %Z} ({endpoint.fault}); next call at"
            yield HealthIssue(
                "endpoint_down", f"{_label(endpoint)} {outage} {endpoint.cooldown_until:%F %T %Z}", Severity.NOTE
            )
        for endpoint in table._default_manager.filter(cooldown_until__gt=Now(), down_since=None):
            until = f"is not called until {endpoint.cooldown_until:%F %T %Z}"
            yield HealthIssue("endpoint_resting", f"{_label(endpoint)} {until}", Severity.NOTE)


def _label(endpoint: Endpoint | System) -> str:
    return f"{endpoint._meta.model_name} {endpoint.name}"


def _restart_issues() -> Iterator[HealthIssue]:
    for row in ProcessRestart.objects.filter(last_at__gte=Now() - timedelta(days=1)).order_by("host", "part"):
        when = f"was restarted at {row.last_at:%F %T %Z}, {row.count} times so far"
        yield HealthIssue("restarted", f"{row.part} of {row.host} {when}: {row.reason}", Severity.NOTE)


CHECKS: tuple[Callable[[], Iterator[HealthIssue]], ...] = (
    _disk_issues,
    _host_issues,
    _run_issues,
    _job_issues,
    _guard_issues,
    _backup_issues,
    _endpoint_issues,
    _restart_issues,
)


def stalled_runs() -> list[int]:
    """Runs with claimable units that no worker has been working on for too long."""
    units_of_run = WorkUnit.objects.filter(run_id=OuterRef("pk"))
    quiet_since = Now() - timedelta(seconds=settings.CONCORD_WORKER_TIMEOUT_SECONDS)
    runs = Run.objects.filter(state=Run.State.RUNNING, started_at__lt=quiet_since)
    runs = runs.filter(Exists(units_of_run.filter(claimable()).exclude(on_resting_endpoint())))
    runs = runs.exclude(Exists(units_of_run.filter(state=State.LEASED).exclude(units.lease_expired())))
    runs = runs.exclude(Exists(units_of_run.filter(finished_at__gt=quiet_since)))
    return list(runs.values_list("pk", flat=True))


_examination_lock = threading.Lock()
_last_examination: tuple[float, list[HealthIssue]] = (
    float("-inf"),
    [HealthIssue("not_examined", "not checked yet", Severity.DOWN)],
)


_probe_interval: float = TRIAL_SECONDS


def cached_issues() -> list[HealthIssue]:
    """The issues of at most ten seconds ago, and not from before the last :func:`recheck`. While a check runs, other
    requests get the previous result, so that at most one request waits for an unresponsive database."""
    global _last_examination, _probe_interval
    if time.monotonic() - _last_examination[0] > TRIAL_SECONDS and _examination_lock.acquire(blocking=False):
        try:
            interval, _probe_interval = _probe_interval, TRIAL_SECONDS
            _last_examination = (time.monotonic(), find_issues(probe_interval=interval))
        finally:
            _examination_lock.release()
    return _last_examination[1]


def recheck() -> None:
    """Have the next :func:`cached_issues` of this process write a probe, because a request could not use the
    database."""
    global _last_examination, _probe_interval
    _last_examination, _probe_interval = (float("-inf"), _last_examination[1]), 0
