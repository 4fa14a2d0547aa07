"""A run against a rate-limiting judge: waits are obeyed, units deferred, workers released, and no score is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from django.db.models import Count
from django.db.models.functions import Now
from django.utils import timezone

from evaluation.judges.shipped import profile_row, save_judge, shipped_rubric_row
from evaluation.models import Attempt, Endpoint, Reply, Run, Score, WorkUnit
from evaluation.models.work import EndpointQuotaLease
from evaluation.runs.execution import drain, preflight
from evaluation.worker import dispatch, units
from evaluation.worker.dispatch import requeue_stalled
from evaluation.worker.health import stalled_runs
from evaluation.worker.lifecycle import RunConfig, make_run, start
from tests.factories import make_answer_set, make_question_set, question_spec
from tests.judge_server import JudgeServer, actions

pytestmark = pytest.mark.django_db(transaction=True)
ANSWERS = 6


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer(latency=0.01) as server:
        yield server


@pytest.fixture
def enqueued_ids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    run_ids: list[int] = []
    monkeypatch.setattr(dispatch, "enqueue_run", run_ids.append)
    return run_ids


@pytest.fixture
def run(judge: JudgeServer, settings: Any, enqueued_ids: list[int]) -> Run:
    """A started run with six answers and four slots, after its preflight."""
    settings.CONCORD_JUDGE_ORIGINS = [judge.origin]
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, ANSWERS + 1)])
    answers = make_answer_set(questions)
    endpoint = Endpoint.objects.create(name="local", base_url=judge.base_url, max_concurrency=4)
    version = save_judge(answers.project, "remote", endpoint, model="test-model", language="en")
    rubric = shipped_rubric_row("answer_quality", "en")
    started_run = make_run(
        answers, profile_row(answers.project, "graphrag"), RunConfig(), judges=[(version, rubric, True)]
    )
    start(started_run)
    preflight(started_run, time.monotonic() + 30)
    judge.reset()
    enqueued_ids.clear()
    return started_run


def outcomes() -> dict[str, int]:
    return dict(Reply.objects.values_list("outcome").order_by().annotate(Count("id")))


def assert_complete(run: Run, judge: JudgeServer) -> None:
    """Check that each score exists once and attempts equal the calls of the server."""
    assert Run.objects.get(pk=run.pk).state == Run.State.COMPLETED
    assert Score.objects.filter(run=run).count() == 3 * ANSWERS
    assert Attempt.objects.exclude(reply__outcome="not_sent").count() == judge.calls
    assert not EndpointQuotaLease.objects.exists()


def test_short_retry_after_delays_every_call_and_the_run_completes(run: Run, judge: JudgeServer) -> None:
    judge.enqueue(actions.status(429, retry_after="1"))
    drain(run.pk, seconds=60)
    assert_complete(run, judge)
    assert outcomes()["rate_limited"] == 1
    first_call_at = judge.requests[0].at
    # What was out when the server complained came back; everything after it waited.
    assert all(request.at - first_call_at < 0.5 or request.at - first_call_at >= 1.0 for request in judge.requests)


def test_invalid_retry_after_uses_the_default_backoff(run: Run, judge: JudgeServer) -> None:
    judge.enqueue(actions.status(429, retry_after="soon"), actions.status(429, retry_after="-1"))
    drain(run.pk, seconds=60)
    assert_complete(run, judge)
    assert outcomes()["rate_limited"] == 2
    assert Endpoint.objects.get().cooldown_until is None


def test_long_retry_after_defers_the_unit_and_pauses_the_endpoint(
    run: Run, judge: JudgeServer, enqueued_ids: list[int]
) -> None:
    judge.enqueue(actions.status(429, retry_after="300"))
    started_at = datetime.now(UTC)
    drain(run.pk, seconds=60)
    assert (datetime.now(UTC) - started_at).total_seconds() < 20
    assert Run.objects.get(pk=run.pk).state == Run.State.RUNNING
    assert enqueued_ids == []  # nobody is woken for nothing
    calls = judge.calls
    assert calls <= 4  # what was out with the one that was turned away
    deferred = WorkUnit.objects.get(not_before__isnull=False)
    assert deferred.not_before is not None
    assert 290 < (deferred.not_before - timezone.now()).total_seconds() <= 302
    assert set(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)) <= {"todo", "done"}
    # Another worker, another run, the sweep: nobody calls while it rests, and nobody calls the run stalled.
    drain(run.pk, seconds=60)
    assert judge.calls == calls
    assert requeue_stalled() == stalled_runs() == []
    # Later:
    Endpoint.objects.update(cooldown_until=Now() - timedelta(seconds=1))
    WorkUnit.objects.filter(not_before__isnull=False).update(not_before=Now() - timedelta(seconds=1))
    assert requeue_stalled() == [run.pk]
    drain(run.pk, seconds=60)
    assert_complete(run, judge)


def test_retry_after_date_is_obeyed(run: Run, judge: JudgeServer) -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    judge.enqueue(actions.status(429, retry_after=moment))
    drain(run.pk, seconds=60)
    cooldown_until = Endpoint.objects.get().cooldown_until
    assert cooldown_until is not None
    assert 3500 < (cooldown_until - timezone.now()).total_seconds() <= 3601
    assert judge.calls <= 4


def test_overloaded_server_is_retried_until_every_answer_is_scored(run: Run, judge: JudgeServer) -> None:
    judge.enqueue(*[actions.status(503)] * 3)
    drain(run.pk, seconds=90)
    assert_complete(run, judge)
    assert outcomes()["overloaded"] == 3


def test_requests_per_minute_are_limited_over_a_run(run: Run, judge: JudgeServer) -> None:
    Endpoint.objects.update(requests_per_minute=120)  # two at once, then two a second
    drain(run.pk, seconds=60)
    assert_complete(run, judge)
    times = sorted(request.at for request in judge.requests)
    # Six calls: two at once, the other four half a second apart.
    assert times[-1] - times[0] >= 1.9


def test_calls_in_flight_are_limited_by_free_slots_of_the_endpoint(run: Run, judge: JudgeServer) -> None:
    other_share = EndpointQuotaLease.objects.create(
        endpoint=Endpoint.objects.get(),
        run=run,
        worker=run.start_token,
        requested=4,
        slots=2,
        fraction=0.5,
        seen_at=Now(),
    )
    judge.latency = 0.1
    drain(run.pk, seconds=60)
    assert judge.stats()["peak"] <= 2
    other_share.delete()
    assert_complete(run, judge)


def test_unit_is_retried_after_a_timeout(run: Run, judge: JudgeServer, settings: Any) -> None:
    settings.CONCORD_CALL_SECONDS = 1
    judge.enqueue(actions.hang(), actions.drip())
    drain(run.pk, seconds=60)
    assert_complete(run, judge)
    assert outcomes()["timeout"] == 2
    assert Reply.objects.filter(outcome="timeout", cost__isnull=False).count() == 0


def test_first_claim_takes_as_many_units_as_slots(
    run: Run, judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    original_claim = units.claim

    def record_claim(run_id: int, kinds: Any, size: int, *, suspects: bool = False, **options: Any) -> list[WorkUnit]:
        if list(kinds) == ["judge"] and not suspects:
            sizes.append(size)
        return original_claim(run_id, kinds, size, suspects=suspects, **options)

    monkeypatch.setattr(units, "claim", record_claim)
    judge.latency = 0.1
    drain(run.pk, seconds=60)
    assert_complete(run, judge)
    assert sizes[0] == 4  # the places first
    # After the first values more than the places; how many depends on the pace of the machine.
    assert max(sizes) > 4
    assert min(sizes) >= 4


def test_expired_key_pauses_the_run_and_releases_every_unit(run: Run, judge: JudgeServer) -> None:
    judge.otherwise = actions.status(401)
    drain(run.pk, seconds=60)
    paused_run = Run.objects.get(pk=run.pk)
    assert (paused_run.state, paused_run.reason) == (Run.State.PAUSED, "unauthorised: HTTP 401: scripted")
    assert judge.calls <= 4 * 2  # what was out, and what was sent before the first reply was read
    assert set(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)) == {"todo"}
    assert Attempt.objects.exclude(reply__outcome="not_sent").count() == judge.calls


def test_unsent_units_are_released_and_recorded_as_not_sent(run: Run, judge: JudgeServer) -> None:
    judge.latency = 0.5
    drain(run.pk, seconds=0.25)
    outcome_counts, states = outcomes(), WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)
    assert judge.calls <= 4  # no place was filled anew after the time was up
    assert outcome_counts.get("ok", 0) == list(states).count("done") == judge.calls
    assert outcome_counts.get("not_sent", 0) == Attempt.objects.count() - judge.calls
    assert list(states).count("todo") == ANSWERS - judge.calls
    drain(run.pk, seconds=60)
    assert_complete(run, judge)


def test_expired_lease_of_a_live_worker_repeats_no_call(run: Run, judge: JudgeServer) -> None:
    judge.latency = 1.5
    expired_counts: list[int] = []

    def expire_leases() -> None:
        if not expired_counts and (leased := WorkUnit.objects.filter(state="leased")):
            expired_counts.append(leased.update(lease_until=timezone.now() - timedelta(hours=1)))

    drain(run.pk, seconds=30, tick=expire_leases)
    assert expired_counts[0] > 0
    assert_complete(run, judge)
    assert judge.calls == ANSWERS
    assert WorkUnit.objects.filter(run=run, fence=2).exists()  # it was claimed again, by the one that had it
