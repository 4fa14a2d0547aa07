"""Jobs: who may work on one, how turns end, what a crash leaves, and what is told of a job that stands still."""

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
from tests.jobs import catch_rings, work

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
State = Job.State
HOUR = timedelta(hours=1)


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return catch_rings(monkeypatch)


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch, rung: list[int]) -> Callable[[Callable[[Lease], Any]], jobs.JobKind]:
    """Registers a kind of jobs that does what is given."""

    def register(act: Callable[[Lease], Any]) -> jobs.JobKind:
        made = jobs.job("test")(lambda _id, lease: act(lease))
        monkeypatch.setitem(REGISTRY, "test", lambda: Feature(name="test", jobs=(made,)))
        return made

    return register


def ended(job: Job) -> tuple[str, str, int]:
    job.refresh_from_db()
    assert job.token is None
    return job.state, job.problem, job.attempts


def refuse(**params: object) -> Callable[[Lease], None]:
    def act(_: Lease) -> None:
        raise DomainError("judge_away", **params)

    return act


def test_a_job_is_done_once_and_again_only_when_requested(kind: Any, rung: list[int]) -> None:
    turns: list[int] = []
    of = kind(lambda lease: turns.append(lease.job.attempts))
    of.enqueue(7)
    work(of, 7)
    work(of, 7)
    enqueue_due()
    assert (turns, rung, ended(Job.objects.get())) == ([1], [7], ("done", "", 0))
    of.add(7)
    work(of, 7)
    of.enqueue(7)
    work(of, 7)
    assert (turns, Job.objects.count()) == ([1, 1], 1)


def test_unfinished_work_is_due_again_at_once_or_later(kind: Any, rung: list[int]) -> None:
    pauses = [AT_ONCE, timedelta(minutes=2), None]
    of = kind(lambda _: pauses.pop(0))
    of.add(7)
    work(of, 7)
    assert (rung, len(pauses)) == ([7], 2)
    work(of, 7)
    work(of, 7)
    enqueue_due()
    assert (rung, len(pauses)) == ([7], 1)
    Job.objects.update(next_at=F("next_at") - timedelta(minutes=2))
    enqueue_due()
    assert rung == [7, 7]
    work(of, 7)
    assert ended(Job.objects.get()) == ("done", "", 0)


def test_a_second_worker_leaves_a_job_alone_until_its_lease_has_lapsed(kind: Any, rung: list[int]) -> None:
    of, inner = None, list[Any]()

    def act(lease: Lease) -> None:
        if inner:
            return
        inner.append("first")
        work_on(lease.job.pk)
        with of.claimed(7) as other:  # type: ignore[attr-defined]
            inner.append(other)
        Job.objects.update(until=Now() - timedelta(seconds=1))
        work_on(lease.job.pk)
        lease.renewed -= 2 * jobs._RENEW_SECONDS
        inner.append(lease.more())

    of = kind(act)
    job = of.add(7)
    work(of, 7)
    assert inner == ["first", None, False]
    assert ended(job) == ("done", "", 0)


@pytest.mark.django_db(transaction=True)
# Connections that share a database in memory do not wait for each other's locks.
@pytest.mark.skipif(connection.vendor == "sqlite", reason="needs a database that waits for locks")
def test_of_workers_that_start_at_once_one_gets_the_job(kind: Any) -> None:
    turns: list[int] = []
    barrier = threading.Barrier(4)

    def worker(job_id: int) -> None:
        barrier.wait()
        work_on(job_id)
        connection.close()

    job = kind(lambda lease: turns.append(lease.job.attempts)).add(7)
    workers = [threading.Thread(target=worker, args=(job.pk,)) for _ in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert (turns, ended(job)) == ([1], ("done", "", 0))


def test_what_is_requested_while_a_worker_ends_is_not_lost(kind: Any, rung: list[int]) -> None:
    def enqueue_and(outcome: Callable[[Lease], Any], lease: Lease) -> Any:
        jobs.job_kinds()["test"].enqueue(7)
        return outcome(lease)

    for outcome in (lambda _: None, refuse(reason="key_missing"), refuse(reason="endpoint_busy")):
        of = kind(lambda lease, outcome=outcome: enqueue_and(outcome, lease))
        of.enqueue(7)
        rung.clear()
        work(of, 7)
        assert ended(Job.objects.get())[:2] == ("waiting", "")
        assert rung == [7, 7]  # by the request, and by the worker that was in the way


def test_a_refusal_stops_the_job_until_a_person_requests_it(kind: Any, rung: list[int]) -> None:
    reasons = [({"reason": "key_missing"}, "key_missing"), ({}, "judge_away"), ({"reason": "x" * 300}, "x" * 100)]
    for params, problem in reasons:
        of = kind(refuse(**params))
        of.enqueue(7)
        work(of, 7)
        rung.clear()
        enqueue_due()
        assert (ended(Job.objects.get()), rung) == (("stopped", problem, 0), [])
        shown = Job.objects.annotate(waits_for=of.problem("object_id"), other=of.problem()).get()
        assert (shown.waits_for, shown.other) == (problem, problem if shown.pk == 7 else "")


def test_a_busy_endpoint_is_tried_again_without_anybody(kind: Any, rung: list[int]) -> None:
    of = kind(refuse(reason="endpoint_busy"))
    of.add(7)
    for _ in range(MOST_ATTEMPTS + 1):
        work(of, 7)
        assert ended(Job.objects.get()) == ("waiting", "endpoint_busy", 0)
        Job.objects.update(next_at=Now())
    enqueue_due()
    assert rung == [7]


def test_failures_are_retried_after_growing_pauses_and_then_stop_the_job(kind: Any, rung: list[int]) -> None:
    of = kind(lambda _: 1 / 0)
    job, pauses = of.add(7), []
    for attempt in range(1, MOST_ATTEMPTS + 1):
        Job.objects.update(next_at=Now())
        with pytest.raises(ZeroDivisionError):
            work(of, 7)
        state = "stopped" if attempt == MOST_ATTEMPTS else "waiting"
        assert ended(job) == (state, FAILED, attempt)
        later = Job.objects.annotate(pause=F("next_at") - Now()).get()
        pauses.append(round(later.pause.total_seconds()))
    assert pauses == [30, 60, 120, 240, 480, 960, 1920, 3600]
    enqueue_due()
    assert rung == []
    assert [one.code for one in find_issues() if one.code.startswith("job")] == ["job_failed"]
    of.enqueue(7)
    assert ended(job) == ("waiting", "", 0)


def test_workers_that_die_on_a_job_stop_it_in_the_end(kind: Any, rung: list[int]) -> None:
    def die(_: Lease) -> None:
        raise SystemExit

    of = kind(die)
    job = of.add(7)
    for attempt in range(1, MOST_ATTEMPTS + 1):
        with pytest.raises(SystemExit):
            work(of, 7)
        job.refresh_from_db()
        assert (job.state, job.attempts) == ("working", attempt)
        work(of, 7)  # its lease stands
        job.refresh_from_db()
        assert job.attempts == attempt
        Job.objects.update(until=Now() - timedelta(seconds=1))
        enqueue_due()
    assert len(rung) == MOST_ATTEMPTS - 1
    assert ended(job) == ("stopped", FAILED, MOST_ATTEMPTS)


@pytest.mark.skipif(not leases.local_token_range(), reason="processes cannot be told apart")
def test_the_lease_of_a_process_that_ended_here_lapses_at_once(kind: Any, rung: list[int]) -> None:
    job = kind(lambda _: None).add(7)
    token = subprocess.check_output(
        [sys.executable, "-c", "from evaluation.worker.leases import new_token; print(new_token())"], text=True
    )
    for holder, due in ((token.strip(), [7]), (str(leases.new_token()), [])):
        Job.objects.filter(pk=job.pk).update(state="working", token=holder, until=Now() + HOUR)
        rung.clear()
        enqueue_due()
        assert rung == due


def test_a_lease_ends_with_its_time_and_notes_stay(kind: Any, settings: Any) -> None:
    settings.CONCORD_TASK_SECONDS = 0
    seen = []

    def act(lease: Lease) -> timedelta | None:
        seen.append((lease.more(), dict(lease.job.notes)))
        lease.note(model="m", turns=len(seen))
        return AT_ONCE if len(seen) < 2 else None

    of = kind(act)
    of.add(7)
    work(of, 7)
    work(of, 7)
    assert seen == [(False, {}), (False, {"model": "m", "turns": 1})]
    with of.claimed(7) as lease:
        assert lease.more()
    assert ended(Job.objects.get()) == ("waiting", "", 0)
    with of.claimed(7) as lease:
        lease.done = True
    assert ended(Job.objects.get()) == ("done", "", 0)


def test_health_tells_of_jobs_that_nobody_works_on(kind: Any, settings: Any) -> None:
    job = kind(lambda _: None).add(7)

    def codes() -> list[str]:
        return [one.code for one in find_issues() if one.code.startswith("job")]

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


def test_jobs_of_a_feature_that_is_gone_stay_as_they_are(rung: list[int]) -> None:
    Job.objects.create(kind="removed", object_id=7)
    enqueue_due()
    assert (rung, Job.objects.get().state) == ([], "waiting")
