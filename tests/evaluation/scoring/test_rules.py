"""Rule metrics: computed once for the same answers under the same settings, and while calls are out."""

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


def answers_about_capitals() -> AnswerSet:
    specs = [question_spec(n, category="single_hop") for n in range(1, 4)]
    return make_answer_set(make_question_set(specs=specs), texts=["It is city 1.", "I don't know.", "Nobody said so."])


def scored(answers: AnswerSet, profile: str = "standard") -> Run:
    run = prepare_run(answers, profile_row(answers.project, profile), judge=None)
    start(run)
    return drain(run.pk, seconds=60)


def said(run: Run) -> set[tuple[object, ...]]:
    rows = Score.objects.filter(run=run, unit__kind="rules")
    return set(rows.values_list("answer", "metric", "status", "value", "label", "reason"))


def parts(run: Run) -> set[tuple[object, ...]]:
    rows = Finding.objects.filter(score__run=run)
    return set(
        rows.values_list("score__answer", "score__metric", "position", "kind", "text", "verdict", "start", "end")
    )


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The answers whose rules were computed."""
    found: list[int] = []
    real = rules.RuleScorer._compute

    def noted(self: rules.RuleScorer, answer: Answer, contexts: Any) -> Any:
        found.append(answer.pk)
        return real(self, answer, contexts)

    monkeypatch.setattr(rules.RuleScorer, "_compute", noted)
    return found


def test_a_second_run_of_the_same_answers_takes_scores_and_findings_over(computed: list[int]) -> None:
    answers = answers_about_capitals()
    first = scored(answers)
    assert len(computed) == 3
    second = scored(answers)
    assert len(computed) == 3
    assert second.state == Run.State.COMPLETED
    assert said(second) == said(first)
    assert parts(second) == parts(first) != set()
    mine = Score.objects.filter(run=second, unit__kind="rules")
    units = WorkUnit.objects.filter(run=second).values_list("pk", flat=True)
    assert set(mine.values_list("unit", flat=True)) == set(units)


def test_other_settings_other_metrics_and_another_reading_of_korean_are_computed(computed: list[int]) -> None:
    """``standard`` has metrics that ``graphrag`` lacks."""
    answers = answers_about_capitals()
    scored(answers, "graphrag")
    scored(answers, "standard")
    assert len(computed) == 6
    run = prepare_run(answers, profile_row(answers.project, "standard"), judge=None)
    Run.objects.filter(pk=run.pk).update(config={**run.config, "analysis": "another"})
    run.refresh_from_db()
    start(run)
    drain(run.pk, seconds=60)
    assert len(computed) == 9


def test_what_the_earlier_run_is_not_done_with_is_computed(computed: list[int]) -> None:
    answers = answers_about_capitals()
    first = scored(answers)
    unit = WorkUnit.objects.filter(run=first).first()
    assert unit
    WorkUnit.objects.filter(pk=unit.pk).update(state="failed", reason="crash_loop")
    computed.clear()
    scored(answers)
    assert computed == [unit.answer_id]


def test_rules_are_done_while_calls_are_out(settings: Any) -> None:
    with JudgeServer(latency=1.0) as server:
        settings.CONCORD_JUDGE_ORIGINS = [server.origin]
        answers = answers_about_capitals()
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
