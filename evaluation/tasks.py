"""What a background worker may be asked to do: three functions that take one number each."""

from __future__ import annotations

from django.conf import settings
from django.db.models.functions import Now

from evaluation.extensions import features
from evaluation.models import Heartbeat
from evaluation.runs.draining import drain
from evaluation.worker.dispatch import sweep


def drain_run(run_id: int) -> None:
    """Work on a run for one task's time budget."""
    drain(run_id, seconds=settings.CONCORD_BUDGET_SECONDS)


def sweep_all(_: int = 0) -> None:
    """Enqueue every run that has something to do; then do the periodic tasks of the features."""
    sweep()
    for feature in features():
        for task in feature.periodic:
            task()


def beat(_: int = 0) -> None:
    """A sign of life: this host's cluster executes tasks."""
    Heartbeat.objects.update_or_create(host=settings.CONCORD_HOST, defaults={"seen_at": Now()})
