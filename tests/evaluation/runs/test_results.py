"""Means of a run and values of its answers, from rules and the primary judge only."""

from __future__ import annotations

from datetime import timedelta

import pytest

from evaluation.judges.shipped import definitions, shipped_rubric_row
from evaluation.models import MetricDefinition, Run, Score
from evaluation.runs.progress import progress_by_run
from evaluation.runs.results import MetricFigures, generation_values, run_figures, updated_at
from evaluation.worker.lifecycle import RunConfig, run_answers
from tests.factories import make_answer, make_answer_set, make_draft_run, make_judge, make_scored_run, make_units

pytestmark = pytest.mark.django_db


def test_mean_excludes_and_counts_failures() -> None:
    """Six answers judged 1, 2, failed, 4, 5, 1: the mean of five is 13/5 = 2.6."""
    run = make_scored_run(values=[1, 2, None, 4, 5])
    assert run_figures(run)["correctness"] == MetricFigures(2.6, 5, 1, 0)


def test_with_repeats_an_answer_counts_once() -> None:
    """Two answers: judged 1 and 3 (mean 2), and 5 with a failed repeat (mean 5): (2 + 5) / 2 = 3.5, not 9 / 3 = 3."""
    answers = make_answer_set()
    judge, rubric = make_judge(answers.project), shipped_rubric_row("answer_quality", "en")
    run = make_draft_run(answers, config=RunConfig(repeat=2), judges=[(judge, rubric, True)])
    metric = definitions(["correctness"])["correctness"]
    first_answer, second_answer = answers.answers.order_by("id")[:2]
    for number, (answer, repeat, value) in enumerate(
        [(first_answer, 1, 1), (first_answer, 2, 3), (second_answer, 1, 5), (second_answer, 2, None)]
    ):
        Score.objects.create(
            run=run,
            answer=answer,
            metric=metric,
            origin=str(number),
            repeat=repeat,
            judge_version=judge,
            rubric_version=rubric,
            **({"status": "scored", "value": value} if value else {"status": "failed", "reason": "parse"}),
        )
    assert run_figures(run) == {"correctness": MetricFigures(3.5, 3, 1, 0)}


def test_newest_round_of_an_answer_is_used() -> None:
    answers = make_answer_set()
    first_answer = answers.answers.order_by("id").first()
    assert first_answer is not None
    newer_answer = make_answer(answers, first_answer.question, "better", round=1)
    answers_of_run = run_answers(make_draft_run(answers))
    assert newer_answer in answers_of_run
    assert first_answer not in answers_of_run
    assert len(answers_of_run) == 6


def test_run_with_selected_questions_has_only_their_answers() -> None:
    run = make_draft_run(config=RunConfig(rules=("keyword_hit",), question_ids=("q2",)))
    assert [answer.question.external_id for answer in run_answers(run)] == ["q2"]


def test_generation_values_use_the_names_of_their_source() -> None:
    run = make_draft_run()
    answer = run.answer_set.answers.order_by("id").first()
    assert answer is not None
    for name, value in [("precision_at_k", 0.2), ("hit_at_k", 1.0), ("generation_faithfulness", 0.9)]:
        metric = MetricDefinition.objects.create(name=name, version=1, kind="rule", scale="0..1:real")
        Score.objects.create(run=run, answer=answer, metric=metric, origin=name, status="scored", value=value)
    assert generation_values(run, [answer])[answer.pk] == {
        "precision": 0.2,
        "recall": None,
        "hit": 1.0,
        "reciprocal_rank": None,
        "faithfulness": 0.9,
        "answer_relevancy": None,
    }


def test_faithfulness_from_1_to_5_is_not_a_generation_value() -> None:
    run = make_scored_run(values=[5])
    answers = list(run_answers(run))
    assert {values["faithfulness"] for values in generation_values(run, answers).values()} == {None}


def test_updated_at_is_the_time_of_the_last_change() -> None:
    run = make_draft_run()
    assert updated_at(run) == run.created_at
    (unit,) = make_units(run, 1)
    finished_at = run.created_at + timedelta(hours=1)
    unit.finished_at = finished_at
    unit.save()
    assert updated_at(run) == finished_at


def test_the_progress_of_many_runs_takes_three_queries(django_assert_num_queries: object) -> None:
    answers = make_answer_set()
    runs = [make_draft_run(answers) for _ in range(3)]
    make_units(runs[0], 4)
    with django_assert_num_queries(3):  # type: ignore[operator]
        progress = progress_by_run(runs)
    assert [progress[run.pk].total for run in runs] == [4, 0, 0]
    assert progress[runs[1].pk].share == 1.0
    assert Run.objects.count() == 3


def test_a_new_score_is_in_the_figures_at_once() -> None:
    run = make_scored_run(values=[1, 2])
    figures = run_figures(run)
    answer = run.answer_set.answers.order_by("id").last()
    assert answer is not None
    metric = MetricDefinition.objects.create(name="precision_at_k", version=1, kind="rule", scale="0..1:real")
    Score.objects.create(run=run, answer=answer, metric=metric, origin="late", status="scored", value=0.5)
    assert run_figures(run) == figures | {"precision_at_k": MetricFigures(0.5, 1, 0, 0)}
