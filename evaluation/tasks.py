"""Entry points of background workers: functions with one numeric argument."""

from __future__ import annotations

from django.conf import settings
from django.db.models.functions import Now

from evaluation.extensions import features
from evaluation.models import Heartbeat
from evaluation.runs.execution import drain
from evaluation.worker import jobs
from evaluation.worker.dispatch import requeue_stalled
from evaluation.worker.host_settings import record_host


def drain_run(run_id: int) -> None:
    """Work on a run within one task's time budget."""
    drain(run_id, seconds=settings.CONCORD_TASK_SECONDS)


def sweep_all(_: int = 0) -> None:
    """Enqueue all runs and jobs with pending work, then call the features' periodic tasks."""
    requeue_stalled()
    jobs.enqueue_due()
    for feature in features():
        for task in feature.periodic:
            task()


def beat(_: int = 0) -> None:
    """Record that this host's cluster executes tasks."""
    Heartbeat.objects.update_or_create(host=settings.CONCORD_HOST, defaults={"seen_at": Now()})
    record_host()
