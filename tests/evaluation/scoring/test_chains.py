"""Families with several calls per unit: one attempt per call, and no repeated call after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import pytest

from evaluation.core.samples import Status
from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.models import Answer, AnswerSet, Attempt, Context, Finding, Reply, Run, Score, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.pool import CallPool
from evaluation.runs import execution
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import pause, resume, retry_failed, start
from tests.evaluation.scoring.families import ReplyScript, ScriptedJudge, make_baseline_run, make_scripted_run
from tests.factories import make_answer_set, make_question_set

pytestmark = pytest.mark.django_db
ANSWERS = 3
MakeRun = Callable[..., Run]


@pytest.fixture(autouse=True)
def no_queue(settings: object) -> None:
    settings.CONCORD_DISPATCHER = "local"  # type: ignore[attr-defined]


def make_claims_run(make_run: MakeRun = make_baseline_run, **fields: object) -> Run:
    answers = make_answer_set(make_question_set(specs=ANSWERS))
    return make_run(answers, **{"reported": ["claim_support"], **fields})


def install_judge(monkeypatch: pytest.MonkeyPatch, script: ReplyScript) -> ScriptedJudge:
    judge = ScriptedJudge(script)
    monkeypatch.setattr(execution, "client_of", lambda _: judge)
    return judge


def test_each_call_of_a_unit_has_its_own_attempt_and_reply() -> None:
    run = make_claims_run()
    start(run)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert Attempt.objects.count() == Reply.objects.filter(outcome="ok").count() == 2 * ANSWERS
    assert set(Attempt.objects.values_list("number", flat=True)) == {1, 2}
    assert set(Score.objects.filter(run=run).values_list("metric__name", "value")) == {("claim_support", 1.0)}


def test_claims_are_stored_with_spans() -> None:
    run = make_claims_run()
    start(run)
    drain(run.pk, seconds=30)
    finding = Finding.objects.filter(score__run=run).first()
    assert finding is not None
    answer = finding.score.answer
    assert (finding.kind, finding.verdict, finding.context) == ("claim", "supported", 0)
    assert answer.text[finding.start : finding.end] == finding.text
    passage = answer.contexts.get(position=0).text
    assert passage[finding.quote_start : finding.quote_end] == finding.quote != ""


def test_run_paused_between_two_calls_resumes_with_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_claims_run(make_scripted_run)
    judge, original_collect = install_judge(monkeypatch, lambda _: None), CallPool.collect

    def collect(pool: CallPool, timeout: float = 0.0) -> list[tuple[Hashable, JudgeReply]]:
        replies = original_collect(pool, timeout)
        pause(Run.objects.get(pk=run.pk))
        return replies

    monkeypatch.setattr(CallPool, "collect", collect)
    start(run)
    drain(run.pk, seconds=30)
    assert Run.objects.get(pk=run.pk).state == Run.State.PAUSED
    monkeypatch.setattr(CallPool, "collect", original_collect)
    assert {call.judge_request.step for call in judge.calls} == {"extract"}
    assert not Score.objects.filter(run=run).exists()
    assert set(WorkUnit.objects.values_list("state", flat=True)) == {"todo"}
    second_judge = install_judge(monkeypatch, lambda _: None)
    assert resume(Run.objects.get(pk=run.pk))
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    extract_calls = sum(call.judge_request.step == "extract" for call in [*judge.calls, *second_judge.calls])
    assert extract_calls == ANSWERS  # no claims were sought twice
    assert sum(call.judge_request.step == "verify" for call in second_judge.calls) == ANSWERS
    assert Score.objects.filter(run=run, status=Status.SCORED).count() == ANSWERS


def test_unit_is_released_when_time_ends_between_two_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_claims_run(make_scripted_run)
    judge = install_judge(monkeypatch, lambda _: None)
    start(run)
    for _ in range(20):
        if drain(run.pk, seconds=0.0001).state == Run.State.COMPLETED:
            break
    drain(run.pk, seconds=30)
    assert Score.objects.filter(run=run, status=Status.SCORED).count() == ANSWERS
    assert len({(call.answer.text, call.judge_request.step) for call in judge.calls}) == len(judge.calls) == 2 * ANSWERS


def test_second_call_is_retried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_claims_run(make_scripted_run)
    failures = iter([JudgeReply(Outcome.OK, raw="prose")])

    def script(call: JudgeCall) -> JudgeReply | None:
        return next(failures, None) if call.judge_request.step == "verify" else None

    judge = install_judge(monkeypatch, script)
    start(run)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    steps = [call.judge_request.step for call in judge.calls]
    assert (steps.count("extract"), steps.count("verify")) == (ANSWERS, ANSWERS + 1)
    assert sorted(Reply.objects.values_list("outcome", flat=True)).count("parse") == 1
    assert max(Attempt.objects.values_list("number", flat=True)) == 3


def test_failed_step_fails_the_unit_and_a_retry_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_claims_run(make_scripted_run)
    install_judge(
        monkeypatch, lambda call: JudgeReply(Outcome.REFUSED) if call.judge_request.step == "verify" else None
    )
    start(run)
    assert drain(run.pk, seconds=30).state == Run.State.INCOMPLETE
    assert set(Score.objects.values_list("status", "reason")) == {("failed", "refused")}
    judge = install_judge(monkeypatch, lambda _: None)
    assert retry_failed(run) == ANSWERS
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert len(judge.calls) == 2 * ANSWERS  # a new round uses nothing of the old one
    assert Score.objects.filter(round=1, status=Status.SCORED).count() == ANSWERS


def test_judge_label_replaces_the_rule_for_negative_detection() -> None:
    fields = {"reported": ["keyword_hit", "negative_detection", "negative_label"]}
    run = make_claims_run(**fields)
    start(run)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    negative = Score.objects.filter(run=run, metric__name="negative_detection", status=Status.SCORED)
    assert negative.count() == 1  # one of three questions is negative
    assert negative.get().judge_version is not None
    assert negative.get().detail["label"] in {"abstain", "correct_premise", "answer", "fabricate"}
    assert Score.objects.filter(run=run, metric__name="negative_detection").count() == ANSWERS


def test_cap_of_the_profile_limits_the_judge_score() -> None:
    questions = make_question_set(specs=1)
    answers = make_answer_set(make_question_set(questions.project, specs=0))
    AnswerSet.objects.filter(pk=answers.pk).update(question_set=questions)
    answers.refresh_from_db()
    text = "The capital is city 1. Call 02-123-4567."
    fields = {"status": "ok", "text": text, "text_hash": "0" * 64, "retrieves": True}
    answer = Answer.objects.create(answer_set=answers, question=questions.questions.get(), **fields)
    Context.objects.create(answer=answer, position=0, text="The capital is city 1.")
    caps = [{"metric": "accuracy", "flag": "unknown_phone", "at_most": 0}]
    run = make_baseline_run(answers, reported=["accuracy"], caps=caps)
    start(run)
    drain(run.pk, seconds=30)
    score = Score.objects.get(metric__name="accuracy")
    assert (score.value, score.detail["judged"]) == (0.0, 1.0)
    assert score.findings.get(kind="flag").text == "02-123-4567"
