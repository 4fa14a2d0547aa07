"""A judge that does not answer: it rests, one call at a time asks whether it is back, and no unit fails of it."""

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
ANSWERS, PLACES = 60, 8


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer(latency=0.01) as server:
        yield server


@pytest.fixture
def run(judge: JudgeServer, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Sixty answers, eight places, past its preflight; the first rest is a tenth of a second."""
    monkeypatch.setattr(dispatch, "enqueue_run", lambda run_id: None)
    monkeypatch.setattr(endpoint_quota, "MIN_REST", timedelta(seconds=0.1))
    settings.CONCORD_JUDGE_ORIGINS = [judge.origin]
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, ANSWERS + 1)])
    answers = make_answer_set(questions)
    endpoint = Endpoint.objects.create(name="local", base_url=judge.base_url, max_concurrency=PLACES)
    version = save_judge(answers.project, "remote", endpoint, model="test-model", language="en")
    judges = [(version, shipped_rubric_row("answer_quality", "en"), True)]
    made = make_run(answers, profile_row(answers.project, "graphrag"), RunConfig(), judges=judges)
    start(made)
    preflight(made, time.monotonic() + 30)
    judge.reset()
    return made


def went_down(endpoint: Endpoint, seconds: float, rests: float) -> None:
    """So long ago; it rests for so long from now on."""
    now = timezone.now()
    since, until = now - timedelta(seconds=seconds), now + timedelta(seconds=rests)
    Endpoint.objects.filter(pk=endpoint.pk).update(down_since=since, fault="server_error", cooldown_until=until)


def test_faults_in_a_row_rest_the_endpoint_and_fail_no_unit(
    run: Run, judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_quota, "MAX_REST", timedelta(seconds=0.2))
    faults = (
        PLACES + MAX_CONSECUTIVE_FAULTS
    )  # one more than were out and what follows until it rests: one call by itself
    judge.enqueue(*[actions.fitting()] * 10, *[actions.status(500)] * faults)
    drain(run.pk, seconds=60)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETED
    assert Reply.objects.filter(outcome="server_error").count() == faults
    assert judge.calls == ANSWERS + faults
    assert Attempt.objects.exclude(reply__outcome="not_sent").count() == judge.calls
    first, last = judge.requests[10], judge.requests[10 + faults - 1]
    assert last.at - first.at > 0.5
    endpoint = Endpoint.objects.get()
    assert (endpoint.down_since, endpoint.fault) == (None, "")


def test_while_it_is_down_one_worker_has_one_place_and_the_run_is_not_called_stalled(run: Run) -> None:
    endpoint = Endpoint.objects.get()
    went_down(endpoint, 60, -1)
    first, second = QuotaLease(endpoint, run.pk, 8), QuotaLease(endpoint, run.pk, 8)
    granted = [first.renew(), second.renew()]
    assert [one.allowance.calls for one in granted] == [1, 0]
    assert [one.fault for one in granted] == ["server_error"] * 2
    assert granted[0].down_seconds == pytest.approx(60, abs=5)
    first.leave()
    assert second.renew().allowance.calls == 1


def test_only_calls_sent_since_the_last_rest_tell_whether_it_answers() -> None:
    endpoint = Endpoint.objects.create(name="e", base_url="https://e.example/v1")
    share, now = QuotaLease(endpoint, None, 4), time.monotonic()
    share.report_outage(OutageNotice(Outcome.TIMEOUT, now))
    endpoint.refresh_from_db()
    first = endpoint.cooldown_until
    assert endpoint.down_since is not None
    assert first is not None
    assert (first - endpoint.down_since).total_seconds() == pytest.approx(1.0, abs=0.1)
    share.report_outage(OutageNotice(Outcome.TIMEOUT, now))  # was out with the others
    share.report_outage(OutageNotice(None, now))
    endpoint.refresh_from_db()
    assert (endpoint.cooldown_until, endpoint.fault) == (first, "timeout")
    went_down(endpoint, 40, -1)
    share.report_outage(OutageNotice(Outcome.SERVER_ERROR, time.monotonic()))
    endpoint.refresh_from_db()
    assert endpoint.cooldown_until is not None
    assert 38 < (endpoint.cooldown_until - timezone.now()).total_seconds() < 43  # as long as it has been down
    went_down(endpoint, 4000, -1)
    share.report_outage(OutageNotice(Outcome.SERVER_ERROR, time.monotonic()))
    endpoint.refresh_from_db()
    assert endpoint.cooldown_until is not None
    assert 295 < (endpoint.cooldown_until - timezone.now()).total_seconds() <= 301
    went_down(endpoint, 40, -1)
    share.report_outage(OutageNotice(None, time.monotonic()))
    endpoint.refresh_from_db()
    assert endpoint.down_since is None


@pytest.mark.slow
def test_a_unit_that_always_fails_ends_its_run_after_twenty_faults(
    run: Run, judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "INITIAL_PAUSE_SECONDS", 0.05)  # half a minute of waiting otherwise
    monkeypatch.setattr(endpoint_quota, "MAX_REST", timedelta(seconds=0.1))
    stays = WorkUnit.objects.filter(run=run, kind="judge").order_by("id").last()
    assert stays is not None
    WorkUnit.objects.filter(run=run, kind="judge").exclude(pk=stays.pk).update(state="done", finished_at=Now())
    judge.otherwise = actions.status(500)
    for _ in range(25):
        drain(run.pk, seconds=60)
        Endpoint.objects.update(cooldown_until=Now() - timedelta(seconds=1))
    stays.refresh_from_db()
    assert (stays.state, stays.reason) == ("failed", "server_error") or stays.state == "done"
    assert Reply.objects.filter(attempt__unit=stays, outcome="server_error").count() == 20


def test_after_a_day_the_run_pauses_and_who_resumes_it_is_believed(run: Run, judge: JudgeServer) -> None:
    went_down(Endpoint.objects.get(), 86_500, -1)
    drain(run.pk, seconds=60)
    run.refresh_from_db()
    assert (run.state, run.reason, judge.calls) == (Run.State.PAUSED, "server_error", 0)
    assert resume(run)
    drain(run.pk, seconds=60)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETED


def test_the_page_and_health_say_since_when_and_until_when_and_time_left_counts_it(run: Run) -> None:
    drain(run.pk, seconds=60)
    Run.objects.update(state=Run.State.RUNNING)
    WorkUnit.objects.filter(pk__in=list(WorkUnit.objects.values_list("pk", flat=True)[:30])).update(state="todo")
    run.refresh_from_db()
    calm = progress_page(run, progress(run), call_status(run))
    went_down(Endpoint.objects.get(), 60, 7200)
    page = progress_page(run, progress(run), call_status(run))
    assert calm.resting == ""
    assert "local: no good answer since" in page.resting
    assert "an error of its own" in page.resting
    assert page.left == "2 h"
    assert calm.left != page.left
    found = {one.code: one for one in find_issues()}
    assert "endpoint local has not answered since" in found["endpoint_down"].text
    assert "(server_error)" in found["endpoint_down"].text


def test_when_most_of_the_last_fifty_replies_cannot_be_read_the_run_pauses(run: Run, judge: JudgeServer) -> None:
    judge.enqueue(*[actions.fitting()] * 10)
    judge.otherwise = actions.text("I think this answer is quite good.")
    drain(run.pk, seconds=60)
    run.refresh_from_db()
    assert (run.state, run.reason.partition(":")[0]) == (Run.State.PAUSED, "unreadable")
    assert 50 <= judge.calls <= 60 + 6 * PLACES  # what one worker has in hands
    before = judge.calls
    judge.otherwise = actions.fitting()
    assert resume(run)
    drain(run.pk, seconds=60)
    assert judge.calls - before > 10  # those of before it was resumed count no more
    run.refresh_from_db()
    assert run.state == Run.State.INCOMPLETE
    assert pause(run) is False
