"""Test helpers for jobs: work one turn, and record the objects for which workers are woken."""

from __future__ import annotations

import pytest

from evaluation.models import Job
from evaluation.worker import jobs
from evaluation.worker.jobs import JobKind, work_on


def work_on_job(kind: JobKind, object_id: int) -> None:
    """Work for one turn on the job of an object."""
    work_on(kind.jobs.get(object_id=object_id).pk)


def record_wakeups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects the object ids for which workers are woken, without waking any."""
    woken_ids: list[int] = []
    monkeypatch.setattr(
        jobs, "enqueue_task", lambda _task, pk, *, seconds: woken_ids.append(Job.objects.get(pk=pk).object_id)
    )
    return woken_ids
