"""The preflight of a run: what it pins, what pauses the run before any answer is sent, what it leaves alone."""

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
from tests.evaluation.runs.remote import answers_to, remote_run, worked_off
from tests.judge_server import JudgeServer, actions

pytestmark = pytest.mark.django_db


def test_a_run_with_a_remote_judge_is_checked_and_then_works(judge: JudgeServer) -> None:
    run = remote_run(judge)
    start(run)
    assert run.state == Run.State.PREFLIGHT
    run = drain(run.pk, seconds=30)
    assert run.state == Run.State.COMPLETED
    assert (judge.preflights, judge.calls) == (1, 6)
    row = Preflight.objects.get()
    assert (row.outcome, row.rung, row.usage, row.logprobs, row.model_returned, row.calls) == (
        "ok",
        "json_schema",
        True,
        True,
        "judge-1",
        1,
    )
    assert list(run.events.order_by("id").values_list("verb", flat=True)) == ["started", "checked", "completed"]


def test_the_baseline_is_not_checked() -> None:
    answers = answers_to(2)
    run = prepare_run(answers, profile_row(answers.project, "graphrag"), judge=baseline_judge(answers.project, "en"))
    assert worked_off(run).state == Run.State.COMPLETED
    assert not Preflight.objects.exists()


@pytest.mark.parametrize(
    ("refused", "rung"),
    [
        (["json_schema"], "tool"),
        (["json_schema", "tool"], "json_object"),
        (["json_schema", "tool", "json_object"], "text"),
    ],
)
def test_c5_every_answer_is_judged_on_the_rung_that_the_preflight_found(
    judge: JudgeServer, refused: list[str], rung: str
) -> None:
    judge.behave(actions.without(*refused))
    run = worked_off(remote_run(judge, 3))
    assert run.state == Run.State.COMPLETED
    assert [request.rung for request in judge.requests] == [rung] * 3  # no answer was sent to a way that is refused
    assert Score.objects.filter(run=run, judge_version__isnull=False, status="scored").count() == 9


def test_the_rung_is_part_of_the_hash_of_the_judge_as_pinned(judge: JudgeServer) -> None:
    answers = answers_to(1)
    worked_off(remote_run(judge, answers))
    worked_off(remote_run(judge, answers))
    judge.behave(actions.without("json_schema"))
    worked_off(remote_run(judge, answers))
    first, second, third = Preflight.objects.order_by("id").values_list("judge_hash", flat=True)
    assert first == second != third


def test_a_resumed_run_keeps_its_rung_although_the_judge_could_do_better_now(judge: JudgeServer) -> None:
    judge.behave(actions.without("json_schema"))
    run = remote_run(judge, 4)
    start(run)
    drain(run.pk, seconds=0.0)  # no time: nothing is done
    assert judge.preflights == 0
    judge.enqueue(actions.status(401))
    run = drain(run.pk, seconds=30)
    assert run.state == Run.State.PAUSED
    judge.behave(actions.fitting())
    assert resume(run)
    assert run.state == Run.State.RUNNING
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert {request.rung for request in judge.requests} == {"tool"}


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
def test_c4_what_needs_a_person_pauses_the_run_before_any_answer_is_sent(
    judge: JudgeServer, action: actions.Action, reason: str
) -> None:
    judge.behave(action)
    run = worked_off(remote_run(judge))
    code, _, words = run.reason.partition(": ")
    assert (run.state, code) == (Run.State.PAUSED, reason)
    assert words.startswith("HTTP ")
    assert judge.calls == 0
    assert judge.preflights <= 5
    assert not Attempt.objects.exists()
    judge.behave(actions.fitting())
    resume(run)
    assert run.state == Run.State.PREFLIGHT
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_a_key_that_is_not_there_pauses_the_run_without_a_call(judge: JudgeServer) -> None:
    run = remote_run(judge)
    endpoint = run.judges.get().judge_version.endpoint
    assert endpoint is not None
    endpoint.key_env = "CONCORD_KEY_MISSING"
    endpoint.save()
    run = worked_off(run)
    assert (run.state, run.reason, judge.preflights) == (Run.State.PAUSED, "key_missing", 0)


def test_a_passing_fault_is_tried_again(judge: JudgeServer) -> None:
    judge.when(lambda request: request.is_preflight and judge.preflights == 1, actions.status(503, retry_after="0.01"))
    assert worked_off(remote_run(judge)).state == Run.State.COMPLETED
    assert list(Preflight.objects.order_by("id").values_list("outcome", flat=True)) == ["overloaded", "ok"]


def test_a_judge_that_stays_away_pauses_the_run_after_five_tries(judge: JudgeServer) -> None:
    judge.when(lambda request: request.is_preflight, actions.status(503, retry_after="0"))
    run = worked_off(remote_run(judge))
    assert (run.state, run.reason) == (Run.State.PAUSED, "overloaded: HTTP 503: scripted")
    assert judge.preflights == 5


def test_c1_a_judge_that_wants_to_be_left_alone_is_not_asked_until_then(judge: JudgeServer, settings: Any) -> None:
    judge.when(lambda request: judge.preflights == 1, actions.status(429, retry_after="300"))
    run = worked_off(remote_run(judge))
    assert run.state == Run.State.PREFLIGHT
    assert drain(run.pk, seconds=5).state == Run.State.PREFLIGHT
    assert judge.preflights == 1
    assert requeue_stalled() == []
    waiting = Preflight.objects.get()
    assert waiting.retry_at is not None
    assert 290 < (waiting.retry_at - waiting.created_at).total_seconds() < 310


def test_the_sweep_rings_a_run_that_waits_for_its_check(judge: JudgeServer) -> None:
    run = remote_run(judge)
    start(run)
    assert requeue_stalled() == [run.pk]


def test_a_run_can_be_paused_and_cancelled_while_it_is_checked(judge: JudgeServer) -> None:
    run = remote_run(judge)
    start(run)
    assert pause(run)
    assert drain(run.pk, seconds=5).state == Run.State.PAUSED
    assert resume(run)
    assert cancel(run)
    assert drain(run.pk, seconds=5).state == Run.State.CANCELLED
    assert judge.preflights == 0


def test_two_workers_cannot_pin_two_rungs(judge: JudgeServer) -> None:
    run = worked_off(remote_run(judge, 1))
    row = Preflight.objects.get()
    with pytest.raises(IntegrityError), transaction.atomic():
        Preflight.objects.create(
            run=run, judge_version=row.judge_version, outcome="ok", rung="text", judge_hash="0" * 64, created_at=Now()
        )
