"""A whole run with rules and the offline baseline: each score once, each call recorded."""

from __future__ import annotations

import gc

import pytest
from django.db.models import Count

from evaluation.core.samples import Status
from evaluation.judges.shipped import baseline_judge, profile_row
from evaluation.models import AnswerSet, Attempt, Reply, Run, Score, WorkUnit
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.worker.dispatch import requeue_stalled
from evaluation.worker.lifecycle import cancel, pause, resume, retry_failed, start
from tests.factories import make_answer, make_answer_set, make_question_set

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_queue(settings: object) -> None:
    settings.CONCORD_DISPATCHER = "local"  # type: ignore[attr-defined]


def make_baseline_run(answers: AnswerSet | None = None) -> Run:
    answers = answers or make_answer_set()
    return prepare_run(answers, profile_row(answers.project, "graphrag"), judge=baseline_judge(answers.project, "en"))


def test_a_run_gives_every_metric_of_every_answer_once() -> None:
    run = make_baseline_run()
    assert start(run)
    completed_run = drain(run.pk, seconds=30)
    assert completed_run.state == Run.State.COMPLETED
    per_answer = (
        Score.objects.filter(run=run).values("answer").annotate(n=Count("metric", distinct=True), m=Count("id"))
    )
    assert {(row["n"], row["m"]) for row in per_answer} == {(7, 7)}  # 4 rules and 3 judged metrics
    assert set(WorkUnit.objects.values_list("state", flat=True)) == {"done"}


def test_every_judge_unit_has_one_attempt_and_one_reply_that_cost_nothing() -> None:
    run = make_baseline_run()
    start(run)
    drain(run.pk, seconds=30)
    assert Attempt.objects.count() == Reply.objects.count() == 6
    assert {(r.outcome, r.cost, r.tokens_in) for r in Reply.objects.all()} == {("ok", 0, 0)}


def test_repeated_draining_changes_nothing() -> None:
    run = make_baseline_run()
    start(run)
    for _ in range(3):
        drain(run.pk, seconds=30)
    assert Score.objects.filter(run=run).count() == 42


def test_garbage_collector_is_frozen_only_during_calls() -> None:
    run = make_baseline_run()
    start(run)
    frozen: list[int] = []
    drain(run.pk, seconds=30, tick=lambda: frozen.append(gc.get_freeze_count()))
    assert frozen
    assert all(frozen)
    assert gc.get_freeze_count() == 0


def test_starting_twice_creates_units_once() -> None:
    run = make_baseline_run()
    same_run = Run.objects.get(pk=run.pk)
    assert start(run)
    assert not start(same_run)
    assert WorkUnit.objects.filter(run=run).count() == 12


def test_paused_run_is_not_drained_and_a_resumed_one_completes() -> None:
    run = make_baseline_run()
    start(run)
    assert pause(run)
    assert drain(run.pk, seconds=30).state == Run.State.PAUSED
    assert not Score.objects.filter(run=run).exists()
    assert resume(run)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED


def test_cancelled_run_skips_open_units() -> None:
    run = make_baseline_run()
    start(run)
    assert cancel(run)
    drain(run.pk, seconds=30)
    assert set(WorkUnit.objects.values_list("state", "reason")) == {("skipped", "cancelled")}
    assert not resume(run)


def test_failed_answer_fails_every_metric_with_the_upstream_reason() -> None:
    questions = make_question_set(specs=1)
    answers = make_answer_set(make_question_set(project=questions.project, specs=0))
    AnswerSet.objects.filter(pk=answers.pk).update(question_set=questions)
    answers.refresh_from_db()
    make_answer(answers, questions.questions.get(), "", status="failed", reason="connection reset")
    run = make_baseline_run(answers)
    start(run)
    assert drain(run.pk, seconds=30).state == Run.State.INCOMPLETE
    reasons = dict(Score.objects.filter(run=run).values_list("metric__name", "reason"))
    # The question is not negative and a failed answer has no latency; everything else was lost with the answer.
    assert {name for name, reason in reasons.items() if not reason.startswith("upstream")} == {
        "negative_detection",
        "latency",
    }
    assert reasons["keyword_hit"] == reasons["correctness"] == "upstream: connection reset"


def test_retry_does_not_replace_valid_scores() -> None:
    run = make_baseline_run()
    start(run)
    drain(run.pk, seconds=30)
    unit = WorkUnit.objects.filter(run=run, kind="judge").first()
    assert unit is not None
    WorkUnit.objects.filter(pk=unit.pk).update(state="failed", reason="timeout")
    assert retry_failed(run) == 1
    completed_run = drain(run.pk, seconds=30)
    assert completed_run.state == Run.State.COMPLETED
    assert Score.objects.filter(unit=unit).count() == 3
    assert set(Score.objects.filter(unit=unit).values_list("round", "status")) == {(0, Status.SCORED)}


def test_run_without_a_worker_is_requeued() -> None:
    run = make_baseline_run()
    start(run)
    assert requeue_stalled() == [run.pk]
    drain(run.pk, seconds=30)
    assert requeue_stalled() == []


def test_empty_answer_gets_the_lowest_level_without_a_call() -> None:
    run = make_baseline_run(
        make_answer_set(make_question_set(specs=3), texts=["Solution:", "", "The capital is city 3."])
    )
    start(run)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    judge_scores = Score.objects.filter(run=run, judge_version__isnull=False).select_related("answer")
    rule_scores = [score for score in judge_scores if "gate" in score.detail]
    assert {(s.answer.text, s.value, s.detail["gate"]) for s in rule_scores} == {
        ("Solution:", 1.0, "stock"),
        ("", 1.0, "blank"),
    }
    assert {s.reason for s in rule_scores if s.detail["gate"] == "blank"} == {
        "Decided by rule, no judge was asked: the answer is blank."
    }
    assert list(Reply.objects.values_list("outcome", flat=True)) == ["ok"]
    assert Attempt.objects.count() == 1
