"""Jobs: leases, results of a turn, crashes and health issues."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from evaluation.core.errors import DomainError
from evaluation.extensions import REGISTRY, Feature
from evaluation.models import Job
from evaluation.worker import jobs, leases
from evaluation.worker.health import find_issues
from evaluation.worker.jobs import AT_ONCE, FAILED, MOST_ATTEMPTS, Lease, enqueue_due, work_on
from tests.jobs import record_wakeups, work_on_job

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
State = Job.State
HOUR = timedelta(hours=1)


@pytest.fixture
def enqueued_ids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return record_wakeups(monkeypatch)


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch, enqueued_ids: list[int]) -> Callable[[Callable[[Lease], Any]], jobs.JobKind]:
    """A function that registers a kind of jobs with the given action."""

    def register(act: Callable[[Lease], Any]) -> jobs.JobKind:
        job_kind = jobs.job("test")(lambda _id, lease: act(lease))
        monkeypatch.setitem(REGISTRY, "test", lambda: Feature(name="test", jobs=(job_kind,)))
        return job_kind

    return register


def final_state(job: Job) -> tuple[str, str, int]:
    job.refresh_from_db()
    assert job.token is None
    return job.state, job.problem, job.attempts


def raise_refusal(**params: object) -> Callable[[Lease], None]:
    def act(_: Lease) -> None:
        raise DomainError("judge_away", **params)

    return act


def test_job_runs_once_and_again_only_on_request(kind: Any, enqueued_ids: list[int]) -> None:
    turns: list[int] = []
    job_kind = kind(lambda lease: turns.append(lease.job.attempts))
    job_kind.enqueue(7)
    work_on_job(job_kind, 7)
    work_on_job(job_kind, 7)
    enqueue_due()
    assert (turns, enqueued_ids, final_state(Job.objects.get())) == ([1], [7], ("done", "", 0))
    job_kind.add(7)
    work_on_job(job_kind, 7)
    job_kind.enqueue(7)
    work_on_job(job_kind, 7)
    assert (turns, Job.objects.count()) == ([1, 1], 1)


def test_unfinished_job_is_due_at_once_or_after_its_pause(kind: Any, enqueued_ids: list[int]) -> None:
    pauses = [AT_ONCE, timedelta(minutes=2), None]
    job_kind = kind(lambda _: pauses.pop(0))
    job_kind.add(7)
    work_on_job(job_kind, 7)
    assert (enqueued_ids, len(pauses)) == ([7], 2)
    work_on_job(job_kind, 7)
    work_on_job(job_kind, 7)
    enqueue_due()
    assert (enqueued_ids, len(pauses)) == ([7], 1)
    Job.objects.update(next_at=F("next_at") - timedelta(minutes=2))
    enqueue_due()
    assert enqueued_ids == [7, 7]
    work_on_job(job_kind, 7)
    assert final_state(Job.objects.get()) == ("done", "", 0)


def test_second_worker_takes_a_job_only_after_its_lease_expired(kind: Any, enqueued_ids: list[int]) -> None:
    job_kind, events = None, list[Any]()

    def act(lease: Lease) -> None:
        if events:
            return
        events.append("first")
        work_on(lease.job.pk)
        with job_kind.claimed(7) as second_lease:  # type: ignore[attr-defined]
            events.append(second_lease)
        Job.objects.update(until=Now() - timedelta(seconds=1))
        work_on(lease.job.pk)
        lease.renewed -= 2 * jobs._RENEW_SECONDS
        events.append(lease.may_continue())

    job_kind = kind(act)
    job = job_kind.add(7)
    work_on_job(job_kind, 7)
    assert events == ["first", None, False]
    assert final_state(job) == ("done", "", 0)


@pytest.mark.django_db(transaction=True)
# Connections that share a database in memory do not wait for each other's locks.
@pytest.mark.skipif(connection.vendor == "sqlite", reason="needs a database that waits for locks")
def test_only_one_of_concurrent_workers_gets_the_job(kind: Any) -> None:
    turns: list[int] = []
    barrier = threading.Barrier(4)

    def worker(job_id: int) -> None:
        barrier.wait()
        work_on(job_id)
        connection.close()

    job = kind(lambda lease: turns.append(lease.job.attempts)).add(7)
    workers = [threading.Thread(target=worker, args=(job.pk,)) for _ in range(4)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    assert (turns, final_state(job)) == ([1], ("done", "", 0))


def test_request_during_the_end_of_a_turn_is_not_lost(kind: Any, enqueued_ids: list[int]) -> None:
    def enqueue_and(outcome: Callable[[Lease], Any], lease: Lease) -> Any:
        jobs.job_kinds()["test"].enqueue(7)
        return outcome(lease)

    for outcome in (lambda _: None, raise_refusal(reason="key_missing"), raise_refusal(reason="endpoint_busy")):
        job_kind = kind(lambda lease, outcome=outcome: enqueue_and(outcome, lease))
        job_kind.enqueue(7)
        enqueued_ids.clear()
        work_on_job(job_kind, 7)
        assert final_state(Job.objects.get())[:2] == ("waiting", "")
        assert enqueued_ids == [7, 7]  # by the request, and by the worker that was in the way


def test_refusal_stops_the_job_until_it_is_requested(kind: Any, enqueued_ids: list[int]) -> None:
    reasons = [({"reason": "key_missing"}, "key_missing"), ({}, "judge_away"), ({"reason": "x" * 300}, "x" * 100)]
    for params, problem in reasons:
        job_kind = kind(raise_refusal(**params))
        job_kind.enqueue(7)
        work_on_job(job_kind, 7)
        enqueued_ids.clear()
        enqueue_due()
        assert (final_state(Job.objects.get()), enqueued_ids) == (("stopped", problem, 0), [])
        annotated = Job.objects.annotate(waits_for=job_kind.problem("object_id"), other=job_kind.problem()).get()
        assert (annotated.waits_for, annotated.other) == (problem, problem if annotated.pk == 7 else "")


def test_busy_endpoint_is_retried_automatically(kind: Any, enqueued_ids: list[int]) -> None:
    job_kind = kind(raise_refusal(reason="endpoint_busy"))
    job_kind.add(7)
    for _ in range(MOST_ATTEMPTS + 1):
        work_on_job(job_kind, 7)
        assert final_state(Job.objects.get()) == ("waiting", "endpoint_busy", 0)
        Job.objects.update(next_at=Now())
    enqueue_due()
    assert enqueued_ids == [7]


def test_failures_are_retried_after_growing_pauses_and_then_stop_the_job(kind: Any, enqueued_ids: list[int]) -> None:
    job_kind = kind(lambda _: 1 / 0)
    job, pauses = job_kind.add(7), []
    for attempt in range(1, MOST_ATTEMPTS + 1):
        Job.objects.update(next_at=Now())
        with pytest.raises(ZeroDivisionError):
            work_on_job(job_kind, 7)
        state = "stopped" if attempt == MOST_ATTEMPTS else "waiting"
        assert final_state(job) == (state, FAILED, attempt)
        annotated = Job.objects.annotate(pause=F("next_at") - Now()).get()
        pauses.append(round(annotated.pause.total_seconds()))
    assert pauses == [30, 60, 120, 240, 480, 960, 1920, 3600]
    enqueue_due()
    assert enqueued_ids == []
    assert [issue.code for issue in find_issues() if issue.code.startswith("job")] == ["job_failed"]
    job_kind.enqueue(7)
    assert final_state(job) == ("waiting", "", 0)


def test_repeated_crashes_stop_the_job(kind: Any, enqueued_ids: list[int]) -> None:
    def crash(_: Lease) -> None:
        raise SystemExit

    job_kind = kind(crash)
    job = job_kind.add(7)
    for attempt in range(1, MOST_ATTEMPTS + 1):
        with pytest.raises(SystemExit):
            work_on_job(job_kind, 7)
        job.refresh_from_db()
        assert (job.state, job.attempts) == ("working", attempt)
        work_on_job(job_kind, 7)  # its lease stands
        job.refresh_from_db()
        assert job.attempts == attempt
        Job.objects.update(until=Now() - timedelta(seconds=1))
        enqueue_due()
    assert len(enqueued_ids) == MOST_ATTEMPTS - 1
    assert final_state(job) == ("stopped", FAILED, MOST_ATTEMPTS)


@pytest.mark.skipif(not leases.local_token_range(), reason="processes cannot be told apart")
def test_lease_of_a_dead_local_process_expires_at_once(kind: Any, enqueued_ids: list[int]) -> None:
    job = kind(lambda _: None).add(7)
    token = subprocess.check_output(
        [sys.executable, "-c", "from evaluation.worker.leases import new_token; print(new_token())"], text=True
    )
    for lease_token, expected_ids in ((token.strip(), [7]), (str(leases.new_token()), [])):
        Job.objects.filter(pk=job.pk).update(state="working", token=lease_token, until=Now() + HOUR)
        enqueued_ids.clear()
        enqueue_due()
        assert enqueued_ids == expected_ids


def test_lease_ends_with_its_time_and_notes_are_stored(kind: Any, settings: Any) -> None:
    settings.CONCORD_TASK_SECONDS = 0
    turns = []

    def act(lease: Lease) -> timedelta | None:
        turns.append((lease.may_continue(), dict(lease.job.notes)))
        lease.note(model="m", turns=len(turns))
        return AT_ONCE if len(turns) < 2 else None

    job_kind = kind(act)
    job_kind.add(7)
    work_on_job(job_kind, 7)
    work_on_job(job_kind, 7)
    assert turns == [(False, {}), (False, {"model": "m", "turns": 1})]
    with job_kind.claimed(7) as lease:
        assert lease.may_continue()
    assert final_state(Job.objects.get()) == ("waiting", "", 0)
    with job_kind.claimed(7) as lease:
        lease.done = True
    assert final_state(Job.objects.get()) == ("done", "", 0)


def test_health_reports_stalled_jobs(kind: Any, settings: Any) -> None:
    job = kind(lambda _: None).add(7)

    def codes() -> list[str]:
        return [issue.code for issue in find_issues() if issue.code.startswith("job")]

    assert codes() == []
    Job.objects.update(next_at=Now() - HOUR)
    assert codes() == ["job_stalled"]
    for state, until, expected in (
        ("working", Now() + HOUR, []),
        ("working", Now() - HOUR, ["job_stalled"]),
        ("done", None, []),
    ):
        Job.objects.filter(pk=job.pk).update(state=state, until=until)
        assert codes() == expected


def test_jobs_of_a_removed_feature_are_unchanged(enqueued_ids: list[int]) -> None:
    Job.objects.create(kind="removed", object_id=7)
    enqueue_due()
    assert (enqueued_ids, Job.objects.get().state) == ([], "waiting")
