"""Jobs: background work on an object other than a run, such as an upload, a hold-out test or a search.

A :class:`~evaluation.models.Job` is a row for an object, and :func:`job` registers the function that works on objects
of a kind. A worker claims a due job for a lease, renews it while working, and loses it if it crashes; the next worker
then continues. A job that cannot continue is stopped with the reason until a person requests it again. Failing jobs are
retried after growing pauses, then stopped too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Now

from evaluation.core.errors import DomainError
from evaluation.extensions import features
from evaluation.models import Job
from evaluation.worker import leases
from evaluation.worker.dispatch import enqueue_task
from evaluation.worker.endpoint_quota import ENDPOINT_BUSY

FAILED = "job_failed"
MOST_ATTEMPTS = 8
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 30, 3600
# The next minutely requeueing finds the job due.
AT_ONCE, NEXT_SWEEP = timedelta(), timedelta(seconds=50)
_RENEW_SECONDS = 5.0
_TASK = "evaluation.worker.jobs.work_on"
State = Job.State


@dataclass(slots=True)
class Lease:
    """A claim of a job until ``deadline`` (monotonic seconds). ``done`` is true if no work is left."""

    job: Job
    deadline: float
    renewed: float
    done: bool = False

    @property
    def _row(self) -> QuerySet[Job]:
        return Job.objects.filter(pk=self.job.pk, token=self.job.token)

    def may_continue(self) -> bool:
        """Renew the lease and return whether to continue. False after the deadline, or if another worker claimed the
        job."""
        now = time.monotonic()
        if now - self.renewed > _RENEW_SECONDS:
            self.renewed = now
            if not self._row.update(until=_lease_end()):
                return False
        return now < self.deadline

    def note(self, **notes: Any) -> None:
        """Store facts for later turns in the job's ``notes``."""
        self.job.notes |= notes
        self._row.update(notes=self.job.notes)

    def release(self, **outcome: Any) -> None:
        """End the lease. A job that was requested again meanwhile stays due."""
        if not self._row.filter(state=State.WORKING).update(token=None, until=None, **outcome):
            self._row.update(token=None, until=None)


@dataclass(frozen=True, slots=True)
class JobKind:
    """The jobs of one kind. ``work`` takes the object's id and the lease, and works until nothing is left (then returns
    ``None``) or ``lease.may_continue()`` is false (then returns the pause before the next turn). ``seconds`` limits
    a turn, by default to the limit of any background task."""

    name: str
    work: Callable[[int, Lease], timedelta | None]
    seconds: int | None = None

    @property
    def jobs(self) -> QuerySet[Job]:
        return Job.objects.filter(kind=self.name)

    def add(self, object_id: int) -> Job:
        """Add the job of an object, due now; an existing one stays as it is."""
        return Job.objects.get_or_create(kind=self.name, object_id=object_id)[0]

    def enqueue(self, object_id: int) -> None:
        """Make the job due and enqueue it after the transaction, even if it was stopped or done."""
        due = {"state": State.WAITING, "problem": "", "attempts": 0, "next_at": Now()}
        enqueued, _ = Job.objects.update_or_create(kind=self.name, object_id=object_id, defaults=due)
        enqueue_task(_TASK, enqueued.pk, seconds=self.seconds)

    @contextmanager
    def claimed(self, object_id: int) -> Iterator[Lease | None]:
        """Claim the job of an object for this process, without a deadline; ``None`` while a worker has it. Set ``done``
        of the lease to complete it."""
        rows = Job.objects.filter(_free(), pk=self.add(object_id).pk)
        if (lease := _claim(rows, float("inf"))) is None:
            yield None
            return
        try:
            yield lease
        finally:
            lease.release(state=State.DONE if lease.done else State.WAITING, attempts=0)

    def problem(self, object_id: str = "pk") -> Coalesce:
        """An annotation for objects: the reason why the job is stopped, or empty."""
        return Coalesce(Subquery(self.jobs.filter(object_id=OuterRef(object_id)).values("problem")), Value(""))


def job(name: str, *, seconds: int | None = None) -> Callable[[Callable[[int, Lease], timedelta | None]], JobKind]:
    """Turn a function into the :class:`JobKind` of that name, for the ``jobs`` of the app's ``Feature``."""
    return lambda work: JobKind(name, work, seconds)


def job_kinds() -> dict[str, JobKind]:
    return {kind.name: kind for feature in features() for kind in feature.jobs}


def _free() -> Q:
    return Q(until=None) | Q(until__lt=Now())


def _lease_end() -> object:
    return Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS)


def due() -> QuerySet[Job]:
    """Jobs that a worker may claim, including those of crashed workers."""
    return Job.objects.filter(_free(), state__in=[State.WAITING, State.WORKING], next_at__lte=Now())


def _claim(rows: QuerySet[Job], deadline: float) -> Lease | None:
    token = leases.new_token()
    claim = {"token": token, "until": _lease_end(), "state": State.WORKING, "problem": ""}
    if not rows.update(attempts=F("attempts") + 1, **claim):
        return None
    return Lease(Job.objects.get(token=token), deadline, time.monotonic())


def enqueue_due() -> None:
    """Enqueue every due job, and stop those that crashed too many workers. Leases of dead processes of this machine
    expire at once."""
    if token_range := leases.local_token_range():
        local_jobs = Job.objects.filter(until__gt=Now(), token__range=token_range)
        dead_tokens = [token for token in local_jobs.values_list("token", flat=True) if token and leases.is_dead(token)]
        local_jobs.filter(token__in=dead_tokens).update(until=Now() - timedelta(seconds=1))
    crashed = due().filter(attempts__gte=MOST_ATTEMPTS)
    crashed.update(state=State.STOPPED, problem=FAILED, token=None, until=None)
    seconds = {name: kind.seconds for name, kind in job_kinds().items()}
    for pk, kind in due().filter(kind__in=seconds).values_list("pk", "kind"):
        enqueue_task(_TASK, pk, seconds=seconds[kind])


def work_on(job_id: int) -> None:
    """Work on a job for one turn, unless another worker has it or it is not due."""
    kind = job_kinds()[Job.objects.values_list("kind", flat=True).get(pk=job_id)]
    lease = _claim(due().filter(pk=job_id), time.monotonic() + (kind.seconds or settings.CONCORD_TASK_SECONDS))
    if lease is None:
        return
    try:
        pause = kind.work(lease.job.object_id, lease)
    except DomainError as refusal:
        reason = str(refusal.params.get("reason", refusal.code))[:100]
        if reason == ENDPOINT_BUSY:
            lease.release(state=State.WAITING, problem=reason, attempts=0, next_at=Now() + NEXT_SWEEP)
        else:
            lease.release(state=State.STOPPED, problem=reason, attempts=0)
    # Any error frees the job at once and counts as an attempt; the worker logs it.
    except Exception:
        attempts = lease.job.attempts
        state = State.WAITING if attempts < MOST_ATTEMPTS else State.STOPPED
        seconds = min(RETRY_SECONDS * 2 ** (attempts - 1), LONGEST_RETRY_SECONDS)
        lease.release(state=state, problem=FAILED, next_at=Now() + timedelta(seconds=seconds))
        raise
    else:
        state = State.DONE if pause is None else State.WAITING
        lease.release(state=state, attempts=0, next_at=Now() + pause if pause else Now())
    if due().filter(pk=job_id).exists():
        enqueue_task(_TASK, job_id, seconds=kind.seconds)
