"""The watchdog: rings the cluster's canary and restarts the cluster when it stays silent."""

from __future__ import annotations

import logging
import socket
import time

from django.conf import settings
from django.db import DatabaseError, connection

from evaluation.work import dispatch
from evaluation.work.health import heartbeat_is_fresh
from evaluation.work.serving import Child
from evaluation.work.sweep import sweep

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
