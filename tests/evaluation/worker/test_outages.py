"""Outages of a judge: the endpoint pauses, single calls test whether it is back, and no unit fails because of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from evaluation.judges.shipped import profile_row, save_judge, shipped_rubric_row
from evaluation.models import Attempt, Endpoint, Reply, Run, WorkUnit
from evaluation.network import pacing
from evaluation.network.outcomes import Outcome
from evaluation.network.pacing import MAX_CONSECUTIVE_FAULTS, OutageNotice
from evaluation.runs.execution import drain, preflight
from evaluation.runs.progress import call_status, progress
from evaluation.worker import dispatch, endpoint_quota
from evaluation.worker.endpoint_quota import QuotaLease
from evaluation.worker.health import find_issues
from evaluation.worker.lifecycle import RunConfig, make_run, pause, resume, start
from review.reports.pages.run import progress_page
from tests.factories import make_answer_set, make_question_set, question_spec
from tests.judge_server import JudgeServer, actions

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
ANSWERS, SLOTS = 60, 8


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer(latency=0.01) as server:
        yield server


@pytest.fixture
def run(judge: JudgeServer, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A started run with sixty answers and eight slots, after its preflight; the first pause is a tenth of a second."""
    monkeypatch.setattr(dispatch, "enqueue_run", lambda run_id: None)
    monkeypatch.setattr(endpoint_quota, "MIN_REST", timedelta(seconds=0.1))
    settings.CONCORD_JUDGE_ORIGINS = [judge.origin]
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, ANSWERS + 1)])
    answers = make_answer_set(questions)
    endpoint = Endpoint.objects.create(name="local", base_url=judge.base_url, max_concurrency=SLOTS)
    version = save_judge(answers.project, "remote", endpoint, model="test-model", language="en")
    judges = [(version, shipped_rubric_row("answer_quality", "en"), True)]
    started_run = make_run(answers, profile_row(answers.project, "graphrag"), RunConfig(), judges=judges)
    start(started_run)
    preflight(started_run, time.monotonic() + 30)
    judge.reset()
    return started_run


def set_outage(endpoint: Endpoint, seconds: float, pause_seconds: float) -> None:
    """Set the age of the outage, and the pause from now in seconds."""
    now = timezone.now()
    down_since, cooldown_until = now - timedelta(seconds=seconds), now + timedelta(seconds=pause_seconds)
    Endpoint.objects.filter(pk=endpoint.pk).update(
        down_since=down_since, fault="server_error", cooldown_until=cooldown_until
    )


def test_consecutive_faults_pause_the_endpoint_and_fail_no_unit(
    run: Run, judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_quota, "MAX_REST", timedelta(seconds=0.2))
    faults = (
        SLOTS + MAX_CONSECUTIVE_FAULTS
    )  # one more than were out and what follows until it rests: one call by itself
    judge.enqueue(*[actions.valid_reply()] * 10, *[actions.status(500)] * faults)
    drain(run.pk, seconds=60)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETED
    assert Reply.objects.filter(outcome="server_error").count() == faults
    assert judge.calls == ANSWERS + faults
    assert Attempt.objects.exclude(reply__outcome="not_sent").count() == judge.calls
    first_fault, last_fault = judge.requests[10], judge.requests[10 + faults - 1]
    assert last_fault.at - first_fault.at > 0.5
    endpoint = Endpoint.objects.get()
    assert (endpoint.down_since, endpoint.fault) == (None, "")


def test_only_one_worker_has_a_slot_during_an_outage(run: Run) -> None:
    endpoint = Endpoint.objects.get()
    set_outage(endpoint, 60, -1)
    first_lease, second_lease = QuotaLease(endpoint, run.pk, 8), QuotaLease(endpoint, run.pk, 8)
    quotas = [first_lease.renew(), second_lease.renew()]
    assert [quota.allowance.calls for quota in quotas] == [1, 0]
    assert [quota.fault for quota in quotas] == ["server_error"] * 2
    assert quotas[0].down_seconds == pytest.approx(60, abs=5)
    first_lease.leave()
    assert second_lease.renew().allowance.calls == 1


def test_only_calls_sent_after_the_last_pause_change_the_outage() -> None:
    endpoint = Endpoint.objects.create(name="e", base_url="https://e.example/v1")
    lease, now = QuotaLease(endpoint, None, 4), time.monotonic()
    lease.report_outage(OutageNotice(Outcome.TIMEOUT, now))
    endpoint.refresh_from_db()
    first_cooldown = endpoint.cooldown_until
    assert endpoint.down_since is not None
    assert first_cooldown is not None
    assert (first_cooldown - endpoint.down_since).total_seconds() == pytest.approx(1.0, abs=0.1)
    lease.report_outage(OutageNotice(Outcome.TIMEOUT, now))  # was out with the others
    lease.report_outage(OutageNotice(None, now))
    endpoint.refresh_from_db()
    assert (endpoint.cooldown_until, endpoint.fault) == (first_cooldown, "timeout")
    set_outage(endpoint, 40, -1)
    lease.report_outage(OutageNotice(Outcome.SERVER_ERROR, time.monotonic()))
    endpoint.refresh_from_db()
    assert endpoint.cooldown_until is not None
    assert 38 < (endpoint.cooldown_until - timezone.now()).total_seconds() < 43  # as long as it has been down
    set_outage(endpoint, 4000, -1)
    lease.report_outage(OutageNotice(Outcome.SERVER_ERROR, time.monotonic()))
    endpoint.refresh_from_db()
    assert endpoint.cooldown_until is not None
    assert 295 < (endpoint.cooldown_until - timezone.now()).total_seconds() <= 301
    set_outage(endpoint, 40, -1)
    lease.report_outage(OutageNotice(None, time.monotonic()))
    endpoint.refresh_from_db()
    assert endpoint.down_since is None


@pytest.mark.slow
def test_unit_fails_after_twenty_faults(run: Run, judge: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "INITIAL_PAUSE_SECONDS", 0.05)  # half a minute of waiting otherwise
    monkeypatch.setattr(endpoint_quota, "MAX_REST", timedelta(seconds=0.1))
    failing_unit = WorkUnit.objects.filter(run=run, kind="judge").order_by("id").last()
    assert failing_unit is not None
    WorkUnit.objects.filter(run=run, kind="judge").exclude(pk=failing_unit.pk).update(state="done", finished_at=Now())
    judge.otherwise = actions.status(500)
    for _ in range(25):
        drain(run.pk, seconds=60)
        Endpoint.objects.update(cooldown_until=Now() - timedelta(seconds=1))
    failing_unit.refresh_from_db()
    assert (failing_unit.state, failing_unit.reason) == ("failed", "server_error") or failing_unit.state == "done"
    assert Reply.objects.filter(attempt__unit=failing_unit, outcome="server_error").count() == 20


def test_run_pauses_after_a_day_of_outage_and_can_be_resumed(run: Run, judge: JudgeServer) -> None:
    set_outage(Endpoint.objects.get(), 86_500, -1)
    drain(run.pk, seconds=60)
    run.refresh_from_db()
    assert (run.state, run.reason, judge.calls) == (Run.State.PAUSED, "server_error", 0)
    assert resume(run)
    drain(run.pk, seconds=60)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETED


def test_page_and_health_show_the_outage_and_the_longer_time_left(run: Run) -> None:
    drain(run.pk, seconds=60)
    Run.objects.update(state=Run.State.RUNNING)
    WorkUnit.objects.filter(pk__in=list(WorkUnit.objects.values_list("pk", flat=True)[:30])).update(state="todo")
    run.refresh_from_db()
    page_before = progress_page(run, progress(run), call_status(run))
    set_outage(Endpoint.objects.get(), 60, 7200)
    page = progress_page(run, progress(run), call_status(run))
    assert page_before.resting == ""
    assert "local: no successful reply since" in page.resting
    assert "an internal error" in page.resting
    assert page.left == "2 h"
    assert page_before.left != page.left
    issues = {issue.code: issue for issue in find_issues()}
    assert "endpoint local has not responded since" in issues["endpoint_down"].text
    assert "(server_error)" in issues["endpoint_down"].text


def test_run_pauses_if_most_of_the_last_fifty_replies_are_unreadable(run: Run, judge: JudgeServer) -> None:
    judge.enqueue(*[actions.valid_reply()] * 10)
    judge.otherwise = actions.text("I think this answer is quite good.")
    drain(run.pk, seconds=60)
    run.refresh_from_db()
    assert (run.state, run.reason.partition(":")[0]) == (Run.State.PAUSED, "unreadable")
    assert 50 <= judge.calls <= 60 + 6 * SLOTS  # what one worker has in hands
    calls = judge.calls
    judge.otherwise = actions.valid_reply()
    assert resume(run)
    drain(run.pk, seconds=60)
    assert judge.calls - calls > 10  # those of before it was resumed count no more
    run.refresh_from_db()
    assert run.state == Run.State.INCOMPLETE
    assert pause(run) is False
