"""Families that ask several times: one unit, one attempt per call, and no call made twice after an interruption."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from evaluation.core.samples import Status
from evaluation.judging.calls import JudgeCall, JudgeReply
from evaluation.models import Answer, AnswerSet, Attempt, Context, Finding, Reply, Run, Score, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.pool import CallPool
from evaluation.runs import execution
from evaluation.runs.execution import drain
from evaluation.worker.lifecycle import pause, resume, retry_failed, start
from tests.evaluation.scoring.families import Script, ScriptedJudge, run_under
from tests.factories import make_answer_set, make_question_set

pytestmark = pytest.mark.django_db
ANSWERS = 3


@pytest.fixture(autouse=True)
def no_queue(settings: object) -> None:
    settings.CONCORD_DISPATCHER = "local"  # type: ignore[attr-defined]


def claims_run(**fields: object) -> Run:
    answers = make_answer_set(make_question_set(specs=ANSWERS))
    return run_under(answers, **{"reported": ["claim_support"], **fields})


def judged_by(monkeypatch: pytest.MonkeyPatch, script: Script) -> ScriptedJudge:
    judge = ScriptedJudge(script)
    monkeypatch.setattr(execution, "client_of", lambda _: judge)
    return judge


def test_a_unit_holds_a_chain_of_calls_each_with_its_own_attempt_and_reply() -> None:
    run = claims_run()
    start(run)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert Attempt.objects.count() == Reply.objects.filter(outcome="ok").count() == 2 * ANSWERS
    assert set(Attempt.objects.values_list("number", flat=True)) == {1, 2}
    assert set(Score.objects.filter(run=run).values_list("metric__name", "value")) == {("claim_support", 1.0)}


def test_claims_are_rows_with_their_places() -> None:
    run = claims_run()
    start(run)
    drain(run.pk, seconds=30)
    finding = Finding.objects.filter(score__run=run).first()
    assert finding is not None
    answer = finding.score.answer
    assert (finding.kind, finding.verdict, finding.context) == ("claim", "supported", 0)
    assert answer.text[finding.start : finding.end] == finding.text
    passage = answer.contexts.get(position=0).text
    assert passage[finding.quote_start : finding.quote_end] == finding.quote != ""


def test_a_run_paused_between_two_calls_goes_on_with_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    run = claims_run()
    judge, honest = judged_by(monkeypatch, lambda _: None), CallPool.collect

    def collect(pool: CallPool, timeout: float) -> list[tuple[Hashable, JudgeReply]]:
        found = honest(pool, timeout)
        pause(Run.objects.get(pk=run.pk))
        return found

    monkeypatch.setattr(CallPool, "collect", collect)
    start(run)
    drain(run.pk, seconds=30)
    assert Run.objects.get(pk=run.pk).state == Run.State.PAUSED
    monkeypatch.setattr(CallPool, "collect", honest)
    assert {call.judge_request.step for call in judge.calls} == {"extract"}
    assert not Score.objects.filter(run=run).exists()
    assert set(WorkUnit.objects.values_list("state", flat=True)) == {"todo"}
    again = judged_by(monkeypatch, lambda _: None)
    assert resume(Run.objects.get(pk=run.pk))
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    first = sum(call.judge_request.step == "extract" for call in [*judge.calls, *again.calls])
    assert first == ANSWERS  # no claims were sought twice
    assert sum(call.judge_request.step == "verify" for call in again.calls) == ANSWERS
    assert Score.objects.filter(run=run, status=Status.SCORED).count() == ANSWERS


def test_when_time_is_up_between_two_calls_the_unit_goes_back_unharmed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = claims_run()
    judge = judged_by(monkeypatch, lambda _: None)
    start(run)
    for _ in range(20):
        if drain(run.pk, seconds=0.0001).state == Run.State.COMPLETED:
            break
    drain(run.pk, seconds=30)
    assert Score.objects.filter(run=run, status=Status.SCORED).count() == ANSWERS
    assert len({(call.answer.text, call.judge_request.step) for call in judge.calls}) == len(judge.calls) == 2 * ANSWERS


def test_the_second_call_is_retried_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    run = claims_run()
    failures = iter([JudgeReply(Outcome.OK, raw="prose")])

    def script(call: JudgeCall) -> JudgeReply | None:
        return next(failures, None) if call.judge_request.step == "verify" else None

    judge = judged_by(monkeypatch, script)
    start(run)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    steps = [call.judge_request.step for call in judge.calls]
    assert (steps.count("extract"), steps.count("verify")) == (ANSWERS, ANSWERS + 1)
    assert sorted(Reply.objects.values_list("outcome", flat=True)).count("parse") == 1
    assert max(Attempt.objects.values_list("number", flat=True)) == 3


def test_a_step_that_fails_for_good_fails_the_unit_and_a_retry_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    run = claims_run()
    judged_by(monkeypatch, lambda call: JudgeReply(Outcome.REFUSED) if call.judge_request.step == "verify" else None)
    start(run)
    assert drain(run.pk, seconds=30).state == Run.State.INCOMPLETE
    assert set(Score.objects.values_list("status", "reason")) == {("failed", "refused")}
    judge = judged_by(monkeypatch, lambda _: None)
    assert retry_failed(run) == ANSWERS
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert len(judge.calls) == 2 * ANSWERS  # a new round uses nothing of the old one
    assert Score.objects.filter(round=1, status=Status.SCORED).count() == ANSWERS


def test_where_a_judge_is_on_its_label_decides_and_the_rule_gives_no_second_value() -> None:
    fields = {"reported": ["keyword_hit", "negative_detection", "negative_label"]}
    run = claims_run(**fields)
    start(run)
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    negative = Score.objects.filter(run=run, metric__name="negative_detection", status=Status.SCORED)
    assert negative.count() == 1  # one of three questions is negative
    assert negative.get().judge_version is not None
    assert negative.get().detail["label"] in {"abstain", "correct_premise", "answer", "fabricate"}
    assert Score.objects.filter(run=run, metric__name="negative_detection").count() == ANSWERS


def test_a_profiles_cap_reaches_the_judges_score() -> None:
    questions = make_question_set(specs=1)
    answers = make_answer_set(make_question_set(questions.project, specs=0))
    AnswerSet.objects.filter(pk=answers.pk).update(question_set=questions)
    answers.refresh_from_db()
    text = "The capital is city 1. Call 02-123-4567."
    fields = {"status": "ok", "text": text, "text_hash": "0" * 64, "retrieves": True}
    answer = Answer.objects.create(answer_set=answers, question=questions.questions.get(), **fields)
    Context.objects.create(answer=answer, position=0, text="The capital is city 1.")
    caps = [{"metric": "accuracy", "flag": "unknown_phone", "at_most": 0}]
    run = run_under(answers, reported=["accuracy"], caps=caps)
    start(run)
    drain(run.pk, seconds=30)
    score = Score.objects.get(metric__name="accuracy")
    assert (score.value, score.detail["judged"]) == (0.0, 1.0)
    assert score.findings.get(kind="flag").text == "02-123-4567"
