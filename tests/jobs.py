"""Jobs in tests: take a worker's turn, and watch for which objects workers are woken."""

from __future__ import annotations

import pytest

from evaluation.models import Job
from evaluation.worker import jobs
from evaluation.worker.jobs import JobKind, work_on


def work(kind: JobKind, object_id: int) -> None:
    """Work for one turn on the job of an object."""
    work_on(kind.jobs.get(object_id=object_id).pk)


def catch_rings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ids of the objects for whose jobs workers are woken from now on; none comes."""
    rung: list[int] = []
    monkeypatch.setattr(
        jobs, "enqueue_task", lambda _task, pk, *, seconds: rung.append(Job.objects.get(pk=pk).object_id)
    )
    return rung
