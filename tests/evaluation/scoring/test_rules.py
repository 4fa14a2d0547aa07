"""Rule metrics: computed once for equal answers and settings, and while calls are in flight."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.judges.shipped import profile_row, save_judge
from evaluation.models import Answer, AnswerSet, Attempt, Endpoint, Finding, Reply, Run, Score, WorkUnit
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.scoring import rules
from evaluation.worker.lifecycle import start
from tests.factories import make_answer_set, make_question_set, question_spec
from tests.judge_server import JudgeServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_queue(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"


def make_answers() -> AnswerSet:
    specs = [question_spec(n, category="single_hop") for n in range(1, 4)]
    return make_answer_set(make_question_set(specs=specs), texts=["It is city 1.", "I don't know.", "Nobody said so."])


def run_rules(answers: AnswerSet, profile: str = "standard") -> Run:
    run = prepare_run(answers, profile_row(answers.project, profile), judge=None)
    start(run)
    return drain(run.pk, seconds=60)


def score_rows(run: Run) -> set[tuple[object, ...]]:
    rows = Score.objects.filter(run=run, unit__kind="rules")
    return set(rows.values_list("answer", "metric", "status", "value", "label", "reason"))


def finding_rows(run: Run) -> set[tuple[object, ...]]:
    rows = Finding.objects.filter(score__run=run)
    return set(
        rows.values_list("score__answer", "score__metric", "position", "kind", "text", "verdict", "start", "end")
    )


@pytest.fixture
def computed_ids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ids of the answers for which rules were computed."""
    answer_ids: list[int] = []
    original_compute = rules.RuleScorer._compute

    def record_compute(self: rules.RuleScorer, answer: Answer, contexts: Any) -> Any:
        answer_ids.append(answer.pk)
        return original_compute(self, answer, contexts)

    monkeypatch.setattr(rules.RuleScorer, "_compute", record_compute)
    return answer_ids


@pytest.mark.both_databases
def test_second_run_copies_scores_and_findings(computed_ids: list[int]) -> None:
    answers = make_answers()
    first_run = run_rules(answers)
    assert len(computed_ids) == 3
    second_run = run_rules(answers)
    assert len(computed_ids) == 3
    assert second_run.state == Run.State.COMPLETED
    assert score_rows(second_run) == score_rows(first_run)
    assert finding_rows(second_run) == finding_rows(first_run) != set()
    copied_scores = Score.objects.filter(run=second_run, unit__kind="rules")
    units = WorkUnit.objects.filter(run=second_run).values_list("pk", flat=True)
    assert set(copied_scores.values_list("unit", flat=True)) == set(units)


def test_rules_are_recomputed_for_other_metrics_or_settings(computed_ids: list[int]) -> None:
    """``standard`` has metrics that ``graphrag`` lacks."""
    answers = make_answers()
    run_rules(answers, "graphrag")
    run_rules(answers, "standard")
    assert len(computed_ids) == 6
    run = prepare_run(answers, profile_row(answers.project, "standard"), judge=None)
    Run.objects.filter(pk=run.pk).update(config={**run.config, "analysis": "another"})
    run.refresh_from_db()
    start(run)
    drain(run.pk, seconds=60)
    assert len(computed_ids) == 9


def test_failed_unit_of_the_earlier_run_is_recomputed(computed_ids: list[int]) -> None:
    answers = make_answers()
    first_run = run_rules(answers)
    unit = WorkUnit.objects.filter(run=first_run).first()
    assert unit
    WorkUnit.objects.filter(pk=unit.pk).update(state="failed", reason="crash_loop")
    computed_ids.clear()
    run_rules(answers)
    assert computed_ids == [unit.answer_id]


def test_rules_are_scored_while_calls_are_in_flight(settings: Any) -> None:
    with JudgeServer(latency=1.0) as server:
        settings.CONCORD_JUDGE_ORIGINS = [server.origin]
        answers = make_answers()
        endpoint = Endpoint.objects.create(name="local", base_url=server.base_url, max_concurrency=8)
        judge = save_judge(answers.project, "remote", endpoint, model="test-model", language="en")
        run = prepare_run(answers, profile_row(answers.project, "graphrag"), judge=judge)
        start(run)
        assert drain(run.pk, seconds=60).state == Run.State.COMPLETED
    first_call = Attempt.objects.earliest("created_at").created_at
    last_reply = Reply.objects.latest("created_at").created_at
    moments = Score.objects.filter(run=run, unit__kind="rules").values_list("created_at", flat=True)
    assert moments
    assert all(first_call < moment < last_reply for moment in moments)
