"""Derived metrics in the database: computed when a run settles, once, and again where inputs have changed."""

from __future__ import annotations

import pytest

from evaluation.models import Run, Score
from evaluation.runs.execution import drain
from evaluation.scoring import scores as writing
from evaluation.scoring.scores import current_scores, derive_scores
from evaluation.worker.lifecycle import start
from tests.evaluation.scoring.families import run_under
from tests.factories import make_answer_set, make_question_set

pytestmark = pytest.mark.django_db

RAGAS = {
    "unit": "per_answer",
    "normalise": "min_max",
    "parts": [
        {"metric": "claim_support", "weight": 0.3},
        {"metric": "context_precision", "weight": 0.2},
        {"metric": "context_recall", "weight": 0.2},
        {"metric": "answer_relevance", "weight": 0.3},
    ],
    "reported": ["ragas_score"],
}


@pytest.fixture(autouse=True)
def no_queue(settings: object) -> None:
    settings.CONCORD_DISPATCHER = "local"  # type: ignore[attr-defined]


def drained(**fields: object) -> Run:
    run = run_under(make_answer_set(make_question_set(specs=2)), **{**RAGAS, **fields})
    start(run)
    return drain(run.pk, seconds=30)


def test_derived_metrics_stand_there_when_the_run_is_complete() -> None:
    run = drained()
    assert run.state == Run.State.COMPLETED
    scores = Score.objects.filter(run=run, metric__name="ragas_score")
    # faithfulness 1, precision 100, recall 100 with weights .3 .2 .2 of .7; relevance needs embeddings
    assert [score.value for score in scores] == [pytest.approx(100.0)] * 2
    assert scores[0].detail["missing"] == ["answer_relevance"]
    assert {score.unit_id for score in scores} == {None}


def test_the_weights_of_each_answers_overall_score_are_stored() -> None:
    run = drained()
    score = Score.objects.filter(run=run, metric__name="answer_overall").first()
    assert score is not None
    assert score.value == pytest.approx(1.0)
    assert score.detail["weights"] == pytest.approx(
        {"claim_support": 3 / 7, "context_precision": 2 / 7, "context_recall": 2 / 7}
    )


def test_many_answers_are_derived_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "DERIVE_PAGE", 1)
    run = drained()
    scores = Score.objects.filter(run=run, metric__name="ragas_score")
    assert [(score.value, score.round) for score in scores] == [(pytest.approx(100.0), 0)] * 2
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    assert derive_scores(run) == 0


def test_a_run_mean_profile_has_no_score_of_single_answers() -> None:
    run = drained(unit="run_means")
    assert not Score.objects.filter(run=run, metric__name="answer_overall").exists()
    assert Score.objects.filter(run=run, metric__name="ragas_score").count() == 2


def test_deriving_again_changes_nothing_and_changed_inputs_supersede() -> None:
    run = drained()
    before = Score.objects.count()
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    assert derive_scores(run) == 0
    assert Score.objects.count() == before
    old = Score.objects.filter(run=run, metric__name="claim_support").first()
    assert old is not None
    Score.objects.create(
        **{
            name: getattr(old, name)
            for name in ("run", "answer", "metric", "unit", "origin", "judge_version", "rubric_version", "status")
        },
        value=0.0,
        round=1,
    )
    assert derive_scores(run) == 2  # ragas_score and answer_overall of one answer
    newest = current_scores(Score.objects.filter(run=run, answer=old.answer, metric__name="ragas_score")).get()
    # 0 x .3 + 100 x .2 + 100 x .2, divided by .7
    assert (newest.round, newest.value) == (1, pytest.approx(400 / 7))
    assert derive_scores(run) == 0


def test_nothing_is_derived_for_a_run_that_does_not_run() -> None:
    run = drained()
    assert derive_scores(run) == 0
