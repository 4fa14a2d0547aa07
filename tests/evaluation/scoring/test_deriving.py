"""Derived metrics in the database: computed once when a run settles, and again for changed inputs."""

from __future__ import annotations

import pytest

from evaluation.models import MetricDefinition, Run, Score
from evaluation.runs.execution import drain
from evaluation.scoring import scores as writing
from evaluation.scoring.scores import current_scores, derive_scores, incomplete_metrics
from evaluation.worker.lifecycle import start
from tests.evaluation.scoring.families import make_baseline_run
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


def run_to_end(**fields: object) -> Run:
    run = make_baseline_run(make_answer_set(make_question_set(specs=2)), **{**RAGAS, **fields})
    start(run)
    return drain(run.pk, seconds=30)


def test_derived_metrics_exist_when_the_run_is_complete() -> None:
    run = run_to_end()
    assert run.state == Run.State.COMPLETED
    scores = Score.objects.filter(run=run, metric__name="ragas_score")
    # faithfulness 1, precision 100, recall 100 with weights .3 .2 .2 of .7; relevance needs embeddings
    assert [score.value for score in scores] == [pytest.approx(100.0)] * 2
    assert scores[0].detail["missing"] == ["answer_relevance"]
    assert {score.unit_id for score in scores} == {None}


def test_the_weights_of_each_answers_overall_score_are_stored() -> None:
    run = run_to_end()
    score = Score.objects.filter(run=run, metric__name="answer_overall").first()
    assert score is not None
    assert score.value == pytest.approx(1.0)
    assert score.detail["weights"] == pytest.approx(
        {"claim_support": 3 / 7, "context_precision": 2 / 7, "context_recall": 2 / 7}
    )


def test_overall_score_of_answers_is_incomplete_only_without_incomplete_parts() -> None:
    run = run_to_end()
    overall, part = (MetricDefinition.objects.get(name=name) for name in ("answer_overall", "context_recall"))
    assert incomplete_metrics(run) == []
    for metric, named in ((overall, ["answer_overall"]), (part, ["context_recall"])):
        answer = run.answer_set.answers.first()
        row = {"origin": "rule:x", "round": 9, "status": "failed", "reason": "x"}
        Score.objects.create(run=run, answer=answer, metric=metric, **row)
        assert [row.metric for row in incomplete_metrics(run)] == named


def test_derivation_works_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "DERIVE_PAGE", 1)
    run = run_to_end()
    scores = Score.objects.filter(run=run, metric__name="ragas_score")
    assert [(score.value, score.round) for score in scores] == [(pytest.approx(100.0), 0)] * 2
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    assert derive_scores(run) == 0


def test_a_run_mean_profile_has_no_score_of_single_answers() -> None:
    run = run_to_end(unit="run_means")
    assert not Score.objects.filter(run=run, metric__name="answer_overall").exists()
    assert Score.objects.filter(run=run, metric__name="ragas_score").count() == 2


def test_derivation_is_idempotent_and_changed_inputs_supersede() -> None:
    run = run_to_end()
    count = Score.objects.count()
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    assert derive_scores(run) == 0
    assert Score.objects.count() == count
    claim_score = Score.objects.filter(run=run, metric__name="claim_support").first()
    assert claim_score is not None
    Score.objects.create(
        **{
            name: getattr(claim_score, name)
            for name in ("run", "answer", "metric", "unit", "origin", "judge_version", "rubric_version", "status")
        },
        value=0.0,
        round=1,
    )
    assert derive_scores(run) == 2  # ragas_score and answer_overall of one answer
    current_score = current_scores(
        Score.objects.filter(run=run, answer=claim_score.answer, metric__name="ragas_score")
    ).get()
    # 0 x .3 + 100 x .2 + 100 x .2, divided by .7
    assert (current_score.round, current_score.value) == (1, pytest.approx(400 / 7))
    assert derive_scores(run) == 0


def test_nothing_is_derived_for_a_run_that_is_not_running() -> None:
    run = run_to_end()
    assert derive_scores(run) == 0
