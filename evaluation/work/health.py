"""Whether background work is alive: the heartbeat of the cluster and runs that stand still."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError
from django.db.models.functions import Now

from evaluation.models import Heartbeat
from evaluation.storage import append_only, guards
from evaluation.work.database import try_writing
from evaluation.work.plugins import extras
from evaluation.work.sweep import stalled_runs


@dataclass(frozen=True, slots=True)
class Health:
    """What is wrong, in words; healthy when nothing is."""

    problems: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Whether there is no problem."""
        return not self.problems


def heartbeat_is_fresh(host: str = "") -> bool:
    """Whether a cluster (of the host, if named) executed its canary lately."""
    since = Now() - timedelta(seconds=settings.CONCORD_WEDGED_SECONDS)
    beats = Heartbeat.objects.filter(seen_at__gte=since)
    return (beats.filter(host=host) if host else beats).exists()


def examine(host: str = "") -> Health:
    """Look at the canary, at runs that stand still, at the database's own rules and whether anything can be written."""
    problems = []
    try:
        try_writing()
    except DatabaseError as error:
        problems.append(f"the database takes no writing: {error}")
    if not heartbeat_is_fresh(host):
        problems.append(f"no heartbeat of a cluster in the last {settings.CONCORD_WEDGED_SECONDS} s")
    problems += [f"run {run_id} has claimable units and nobody works on them" for run_id in stalled_runs()]
    problems += [problem for extra in extras() if extra.problems for problem in extra.problems()]
    problems += [f"append-only triggers are missing on {table}" for table in append_only.missing()]
    problems += [f"guard {name} is missing" for name in guards.missing()]
    return Health(tuple(problems))
