"""The preflight of a run: pinned response format, conditions that pause the run, and judges without a preflight."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluation.judges.shipped import baseline_judge, profile_row
from evaluation.models import Attempt, Preflight, Run, Score
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.dispatch import requeue_stalled
from evaluation.worker.lifecycle import cancel, pause, resume, start
from tests.evaluation.runs.remote import make_answers, remote_run, start_and_drain
from tests.judge_server import JudgeServer, actions

pytestmark = pytest.mark.django_db


def test_run_with_a_remote_judge_starts_with_a_preflight(judge: JudgeServer) -> None:
    run = remote_run(judge)
    start(run)
    assert run.state == Run.State.PREFLIGHT
    run = drain(run.pk, seconds=30)
    assert run.state == Run.State.COMPLETED
    assert (judge.preflights, judge.calls) == (1, 6)
    row = Preflight.objects.get()
    assert (row.outcome, row.response_format, row.usage, row.logprobs, row.model_returned, row.calls) == (
        "ok",
        "json_schema",
        True,
        True,
        "judge-1",
        1,
    )
    assert list(run.events.order_by("id").values_list("verb", flat=True)) == ["started", "checked", "completed"]


def test_baseline_has_no_preflight() -> None:
    answers = make_answers(2)
    run = prepare_run(answers, profile_row(answers.project, "graphrag"), judge=baseline_judge(answers.project, "en"))
    assert start_and_drain(run).state == Run.State.COMPLETED
    assert not Preflight.objects.exists()


@pytest.mark.parametrize(
    ("refused_formats", "response_format"),
    [
        (["json_schema"], "tool"),
        (["json_schema", "tool"], "json_object"),
        (["json_schema", "tool", "json_object"], "text"),
    ],
)
def test_answers_are_judged_with_the_response_format_of_the_preflight(
    judge: JudgeServer, refused_formats: list[str], response_format: str
) -> None:
    judge.behave(actions.without(*refused_formats))
    run = start_and_drain(remote_run(judge, 3))
    assert run.state == Run.State.COMPLETED
    assert [request.response_format for request in judge.requests] == [
        response_format
    ] * 3  # no answer was sent to a way that is refused
    assert Score.objects.filter(run=run, judge_version__isnull=False, status="scored").count() == 9


def test_judge_hash_includes_the_response_format(judge: JudgeServer) -> None:
    answers = make_answers(1)
    start_and_drain(remote_run(judge, answers))
    start_and_drain(remote_run(judge, answers))
    judge.behave(actions.without("json_schema"))
    start_and_drain(remote_run(judge, answers))
    first_hash, second_hash, tool_hash = Preflight.objects.order_by("id").values_list("judge_hash", flat=True)
    assert first_hash == second_hash != tool_hash


def test_resumed_run_keeps_its_response_format(judge: JudgeServer) -> None:
    judge.behave(actions.without("json_schema"))
    run = remote_run(judge, 4)
    start(run)
    drain(run.pk, seconds=0.0)  # no time: nothing is done
    assert judge.preflights == 0
    judge.enqueue(actions.status(401))
    run = drain(run.pk, seconds=30)
    assert run.state == Run.State.PAUSED
    judge.behave(actions.valid_reply())
    assert resume(run)
    assert run.state == Run.State.RUNNING
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert {request.response_format for request in judge.requests} == {"tool"}


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (actions.status(401), "unauthorised"),
        (actions.status(403), "forbidden"),
        (actions.status(404, error_code="model_not_found"), "not_found"),
        (actions.status(402), "no_credit"),
        (actions.status(429, error_code="insufficient_quota"), "no_credit"),
        (actions.redirect("http://127.0.0.1:9/"), "redirect"),
        (actions.text("Fine, I would say."), "no_rung"),
        (actions.status(400), "no_rung"),
    ],
)
def test_blocking_outcome_pauses_the_run_before_any_answer_is_sent(
    judge: JudgeServer, action: actions.Action, reason: str
) -> None:
    judge.behave(action)
    run = start_and_drain(remote_run(judge))
    code, _, message = run.reason.partition(": ")
    assert (run.state, code) == (Run.State.PAUSED, reason)
    assert message.startswith("HTTP ")
    assert judge.calls == 0
    assert judge.preflights <= 5
    assert not Attempt.objects.exists()
    judge.behave(actions.valid_reply())
    resume(run)
    assert run.state == Run.State.PREFLIGHT
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_missing_key_pauses_the_run_without_a_call(judge: JudgeServer) -> None:
    run = remote_run(judge)
    endpoint = run.judges.get().judge_version.endpoint
    assert endpoint is not None
    endpoint.key_env = "CONCORD_KEY_MISSING"
    endpoint.save()
    run = start_and_drain(run)
    assert (run.state, run.reason, judge.preflights) == (Run.State.PAUSED, "key_missing", 0)


def test_transient_failure_of_the_preflight_is_retried(judge: JudgeServer) -> None:
    judge.when(lambda request: request.is_preflight and judge.preflights == 1, actions.status(503, retry_after="0.01"))
    assert start_and_drain(remote_run(judge)).state == Run.State.COMPLETED
    assert list(Preflight.objects.order_by("id").values_list("outcome", flat=True)) == ["overloaded", "ok"]


def test_unavailable_judge_pauses_the_run_after_five_tries(judge: JudgeServer) -> None:
    judge.when(lambda request: request.is_preflight, actions.status(503, retry_after="0"))
    run = start_and_drain(remote_run(judge))
    assert (run.state, run.reason) == (Run.State.PAUSED, "overloaded: HTTP 503: scripted")
    assert judge.preflights == 5


def test_long_retry_after_delays_the_preflight(judge: JudgeServer, settings: Any) -> None:
    judge.when(lambda request: judge.preflights == 1, actions.status(429, retry_after="300"))
    run = start_and_drain(remote_run(judge))
    assert run.state == Run.State.PREFLIGHT
    assert drain(run.pk, seconds=5).state == Run.State.PREFLIGHT
    assert judge.preflights == 1
    assert requeue_stalled() == []
    preflight = Preflight.objects.get()
    assert preflight.retry_at is not None
    assert 290 < (preflight.retry_at - preflight.created_at).total_seconds() < 310


def test_run_waiting_for_its_preflight_is_requeued(judge: JudgeServer) -> None:
    run = remote_run(judge)
    start(run)
    assert requeue_stalled() == [run.pk]


def test_run_can_be_paused_and_cancelled_during_the_preflight(judge: JudgeServer) -> None:
    run = remote_run(judge)
    start(run)
    assert pause(run)
    assert drain(run.pk, seconds=5).state == Run.State.PAUSED
    assert resume(run)
    assert cancel(run)
    assert drain(run.pk, seconds=5).state == Run.State.CANCELLED
    assert judge.preflights == 0


def test_only_one_successful_preflight_per_judge_is_stored(judge: JudgeServer) -> None:
    run = start_and_drain(remote_run(judge, 1))
    row = Preflight.objects.get()
    with pytest.raises(IntegrityError), transaction.atomic():
        Preflight.objects.create(
            run=run,
            judge_version=row.judge_version,
            outcome="ok",
            response_format="text",
            judge_hash="0" * 64,
            created_at=Now(),
        )
