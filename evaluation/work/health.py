"""Whether background work is alive: the heartbeat of the cluster, runs that stand still, and the watchdog that rings
the cluster's canary and restarts it when it stays silent."""

from __future__ import annotations

import logging
import socket
import time
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models.functions import Now

from evaluation.models import Heartbeat
from evaluation.storage import append_only, guards
from evaluation.work import dispatch
from evaluation.work.database import try_writing
from evaluation.work.dispatch import stalled_runs, sweep
from evaluation.work.plugins import extras
from evaluation.work.serving import Child


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


log = logging.getLogger("concord.serve")


class Watchdog:
    """Called by the supervisor. A cluster gets the full silence time after each start before it counts as wedged."""

    def __init__(self, cluster: Child) -> None:
        self.cluster = cluster
        self.since = time.monotonic()
        self.restarts = 0

    def __call__(self) -> None:
        """One look: ring the canary and idle runs, and restart the cluster where the last sign of life is too old."""
        if not self.cluster.alive:
            # The leader died; what is left of its group must not go on executing.
            log.error("the cluster died with code %s, starting it again", self.cluster.process.returncode)
            self._restart()
            return
        try:
            silent = time.monotonic() - self.since > settings.CONCORD_WEDGED_SECONDS and not heartbeat_is_fresh(
                socket.gethostname()
            )
            dispatch.ring_canary()
            sweep()
        except DatabaseError as error:
            # The database is away: the workers wait for it too, and a restart would not bring it back.
            log.warning("watchdog cannot reach the database: %s", error)
            return
        finally:
            connection.close()
        if silent:
            log.error("the cluster gave no sign of life for %s s, restarting it", settings.CONCORD_WEDGED_SECONDS)
            self._restart()

    def _restart(self) -> None:
        self.cluster.restart()
        self.restarts += 1
        self.since = time.monotonic()
