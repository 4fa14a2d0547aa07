"""The watchdog gives a cluster without a heartbeat more time after each restart, and less again once it beats."""

from __future__ import annotations

from typing import Any, cast

import pytest

from evaluation.models import ProcessRestart
from evaluation.tasks import beat
from evaluation.worker import dispatch
from evaluation.worker.dispatch import MAX_SECONDS_ALLOWED, Watchdog

pytestmark = pytest.mark.django_db(transaction=True)


class FakeCluster:
    """A cluster that counts its restarts."""

    name = "cluster"
    alive = True
    restarts = 0

    def restart(self) -> None:
        self.restarts += 1


def test_time_allowed_doubles_until_the_cluster_beats(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CONCORD_DISPATCHER, settings.CONCORD_WORKER_TIMEOUT_SECONDS = "local", 120
    # The watchdog's own heartbeat task would run at once.
    monkeypatch.setattr(dispatch, "enqueue_heartbeat", lambda: None)
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    cluster = FakeCluster()
    watchdog = Watchdog(cast(Any, cluster))

    def seconds_until_restart() -> float:
        nonlocal now
        started_at, restarts = now, cluster.restarts
        while cluster.restarts == restarts:
            now += 10
            watchdog()
        return now - started_at

    assert [seconds_until_restart() for _ in range(5)] == [130, 250, 490, 910, 910]
    assert MAX_SECONDS_ALLOWED == 900
    assert ProcessRestart.objects.get().reason == "sent no heartbeat for 900 s"
    beat()
    now += 10_000
    watchdog()
    assert (cluster.restarts, watchdog.seconds_allowed) == (5, 120)
