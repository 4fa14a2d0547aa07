"""A run against a judge that asks for patience: waits are obeyed, units deferred, workers freed, nothing lost."""

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
def rings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    rung: list[int] = []
    monkeypatch.setattr(dispatch, "enqueue_run", rung.append)
    return rung


@pytest.fixture
def run(judge: JudgeServer, settings: Any, rings: list[int]) -> Run:
    """Six answers, four places, begun and past its preflight."""
    settings.CONCORD_JUDGE_ORIGINS = [judge.origin]
    questions = make_question_set(specs=[question_spec(n, category="single_hop") for n in range(1, ANSWERS + 1)])
    answers = make_answer_set(questions)
    endpoint = Endpoint.objects.create(name="local", base_url=judge.base_url, max_concurrency=4)
    version = save_judge(answers.project, "remote", endpoint, model="test-model", language="en")
    rubric = shipped_rubric_row("answer_quality", "en")
    made = make_run(answers, profile_row(answers.project, "graphrag"), RunConfig(), judges=[(version, rubric, True)])
    start(made)
    preflight(made, time.monotonic() + 30)
    judge.reset()
    rings.clear()
    return made


def outcomes() -> dict[str, int]:
    return dict(Reply.objects.values_list("outcome").order_by().annotate(Count("id")))


def assert_complete(run: Run, judge: JudgeServer) -> None:
    """Each score once, and as many attempts as the server saw calls."""
    assert Run.objects.get(pk=run.pk).state == Run.State.COMPLETED
    assert Score.objects.filter(run=run).count() == 3 * ANSWERS
    assert Attempt.objects.exclude(reply__outcome="not_sent").count() == judge.calls
    assert not EndpointQuotaLease.objects.exists()


def test_a_wait_of_a_second_is_kept_by_every_call_and_the_run_completes(run: Run, judge: JudgeServer) -> None:
    judge.enqueue(actions.status(429, retry_after="1"))
    drain(run.pk, seconds=60)
    assert_complete(run, judge)
    assert outcomes()["rate_limited"] == 1
    first = judge.requests[0].at
    # What was out when the server complained came back; everything after it waited.
    assert all(request.at - first < 0.5 or request.at - first >= 1.0 for request in judge.requests)


def test_garbage_in_retry_after_is_answered_with_our_own_backoff(run: Run, judge: JudgeServer) -> None:
    judge.enqueue(actions.status(429, retry_after="soon"), actions.status(429, retry_after="-1"))
    drain(run.pk, seconds=60)
    assert_complete(run, judge)
    assert outcomes()["rate_limited"] == 2
    assert Endpoint.objects.get().cooldown_until is None


def test_a_wait_of_five_minutes_defers_the_unit_frees_the_worker_and_rests_the_endpoint(
    run: Run, judge: JudgeServer, rings: list[int]
) -> None:
    judge.enqueue(actions.status(429, retry_after="300"))
    before = datetime.now(UTC)
    drain(run.pk, seconds=60)
    assert (datetime.now(UTC) - before).total_seconds() < 20
    assert Run.objects.get(pk=run.pk).state == Run.State.RUNNING
    assert rings == []  # nobody is woken for nothing
    sent = judge.calls
    assert sent <= 4  # what was out with the one that was turned away
    deferred = WorkUnit.objects.get(not_before__isnull=False)
    assert deferred.not_before is not None
    assert 290 < (deferred.not_before - timezone.now()).total_seconds() <= 302
    assert set(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)) <= {"todo", "done"}
    # Another worker, another run, the sweep: nobody calls while it rests, and nobody calls the run stalled.
    drain(run.pk, seconds=60)
    assert judge.calls == sent
    assert requeue_stalled() == stalled_runs() == []
    # Later:
    Endpoint.objects.update(cooldown_until=Now() - timedelta(seconds=1))
    WorkUnit.objects.filter(not_before__isnull=False).update(not_before=Now() - timedelta(seconds=1))
    assert requeue_stalled() == [run.pk]
    drain(run.pk, seconds=60)
    assert_complete(run, judge)


def test_a_date_is_obeyed_as_seconds_are(run: Run, judge: JudgeServer) -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    judge.enqueue(actions.status(429, retry_after=moment))
    drain(run.pk, seconds=60)
    until = Endpoint.objects.get().cooldown_until
    assert until is not None
    assert 3500 < (until - timezone.now()).total_seconds() <= 3601
    assert judge.calls <= 4


def test_an_overloaded_server_is_called_less_and_every_answer_is_scored(run: Run, judge: JudgeServer) -> None:
    judge.enqueue(*[actions.status(503)] * 3)
    drain(run.pk, seconds=90)
    assert_complete(run, judge)
    assert outcomes()["overloaded"] == 3


def test_requests_per_minute_are_kept_over_the_whole_run(run: Run, judge: JudgeServer) -> None:
    Endpoint.objects.update(requests_per_minute=120)  # two at once, then two a second
    drain(run.pk, seconds=60)
    assert_complete(run, judge)
    times = sorted(request.at for request in judge.requests)
    # Six calls: two at once, the other four half a second apart.
    assert times[-1] - times[0] >= 1.9


def test_no_more_calls_are_out_than_the_endpoint_has_places_left(run: Run, judge: JudgeServer) -> None:
    other = EndpointQuotaLease.objects.create(
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
    other.delete()
    assert_complete(run, judge)


def test_after_a_call_that_hangs_the_unit_is_tried_once_more(run: Run, judge: JudgeServer, settings: Any) -> None:
    settings.CONCORD_CALL_SECONDS = 1
    judge.enqueue(actions.hang(), actions.drip())
    drain(run.pk, seconds=60)
    assert_complete(run, judge)
    assert outcomes()["timeout"] == 2
    assert Reply.objects.filter(outcome="timeout", cost__isnull=False).count() == 0


def test_units_are_claimed_as_many_at_once_as_there_are_places(
    run: Run, judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    claim = units.claim

    def counted(run_id: int, kinds: Any, size: int, *, suspects: bool = False, **further: Any) -> list[WorkUnit]:
        if list(kinds) == ["judge"] and not suspects:
            sizes.append(size)
        return claim(run_id, kinds, size, suspects=suspects, **further)

    monkeypatch.setattr(units, "claim", counted)
    judge.latency = 0.1
    drain(run.pk, seconds=60)
    assert_complete(run, judge)
    assert sizes[0] == 4  # the places first
    # After the first values more than the places; how many depends on the pace of the machine.
    assert max(sizes) > 4
    assert min(sizes) >= 4


def test_an_expired_key_pauses_the_run_at_once_and_gives_every_unit_back(run: Run, judge: JudgeServer) -> None:
    judge.otherwise = actions.status(401)
    drain(run.pk, seconds=60)
    paused = Run.objects.get(pk=run.pk)
    assert (paused.state, paused.reason) == (Run.State.PAUSED, "unauthorised: HTTP 401: scripted")
    assert judge.calls <= 4 * 2  # what was out, and what was sent before the first reply was read
    assert set(WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)) == {"todo"}
    assert Attempt.objects.exclude(reply__outcome="not_sent").count() == judge.calls


def test_units_claimed_ahead_and_not_sent_are_given_back_and_said_to_be_unsent(run: Run, judge: JudgeServer) -> None:
    judge.latency = 0.5
    drain(run.pk, seconds=0.25)
    found, states = outcomes(), WorkUnit.objects.filter(kind="judge").values_list("state", flat=True)
    assert judge.calls <= 4  # no place was filled anew after the time was up
    assert found.get("ok", 0) == list(states).count("done") == judge.calls
    assert found.get("not_sent", 0) == Attempt.objects.count() - judge.calls
    assert list(states).count("todo") == ANSWERS - judge.calls
    drain(run.pk, seconds=60)
    assert_complete(run, judge)


def test_a_lease_that_lapses_while_its_worker_lives_repeats_no_call(run: Run, judge: JudgeServer) -> None:
    judge.latency = 1.5
    lapsed: list[int] = []

    def jump() -> None:
        if not lapsed and (leased := WorkUnit.objects.filter(state="leased")):
            lapsed.append(leased.update(lease_until=timezone.now() - timedelta(hours=1)))

    drain(run.pk, seconds=30, tick=jump)
    assert lapsed[0] > 0
    assert_complete(run, judge)
    assert judge.calls == ANSWERS
    assert WorkUnit.objects.filter(run=run, fence=2).exists()  # it was claimed again, by the one that had it
