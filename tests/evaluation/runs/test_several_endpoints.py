"""Judges of one run at several endpoints: their calls are in flight at once, and an error elsewhere loses none."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from aiohttp import web

from evaluation.judges.shipped import baseline_judge, save_judge
from evaluation.judging.calls import JudgeReply
from evaluation.models import Answer, Endpoint, Reply, Run, Score, WorkUnit
from evaluation.runs.execution import drain
from evaluation.scoring.judges import JudgeSession, JudgeUnitCall
from evaluation.scoring.rules import RuleScorer
from evaluation.worker.lifecycle import start
from evaluation.worker.units import MAX_TRIES, expire_all_leases
from tests.evaluation.runs.remote import make_answers, remote_run, start_and_drain
from tests.judge_server import JudgeServer, actions
from tests.judge_server.received import ReceivedRequest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_queue(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"


def reply_after(own: threading.Event, other: threading.Event) -> actions.Action:
    """A valid reply, once both servers have been called."""

    async def respond(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        own.set()
        await asyncio.to_thread(other.wait, 20)
        return await actions.valid_reply()(request, http)

    return respond


def test_calls_of_two_endpoints_are_in_flight_at_once(settings: Any) -> None:
    with JudgeServer() as first, JudgeServer() as second:
        settings.CONCORD_JUDGE_ORIGINS = [first.origin, second.origin]
        called = threading.Event(), threading.Event()
        first.when(lambda request: not request.is_preflight, reply_after(*called))
        second.when(lambda request: not request.is_preflight, reply_after(*reversed(called)))
        answers = make_answers(3)
        endpoint = Endpoint.objects.create(name="second", base_url=second.base_url)
        judge = save_judge(answers.project, "second", endpoint, model="judge-2", language="en")
        run = start_and_drain(remote_run(first, answers, beside=[judge]))
    assert all(event.is_set() for event in called)
    assert run.state == Run.State.COMPLETED
    assert Reply.objects.filter(outcome="ok").count() == 6
    assert Reply.objects.exclude(outcome="ok").count() == 0


def test_offline_baseline_judges_while_calls_are_in_flight(settings: Any) -> None:
    with JudgeServer(latency=1.0) as server:
        settings.CONCORD_JUDGE_ORIGINS = [server.origin]
        answers = make_answers(3)
        run = start_and_drain(remote_run(server, answers, beside=[baseline_judge(answers.project, "en")]))
    assert run.state == Run.State.COMPLETED
    first_reply = Reply.objects.filter(attempt__unit__run_judge__judge_version__name="remote").earliest("created_at")
    baseline_scores = Score.objects.filter(run=run, judge_version__endpoint=None, unit__kind="judge")
    assert baseline_scores.count() == 9
    assert not baseline_scores.filter(created_at__gt=first_reply.created_at).exists()


def drain_until_complete(run: Run) -> int:
    """Drain the run, after each error as if its leases were over; the number of errors."""
    for errors in range(3 * MAX_TRIES):
        try:
            drained = drain(run.pk, seconds=30)
        except ValueError:
            expire_all_leases()
            continue
        assert drained.state in {Run.State.COMPLETED, Run.State.INCOMPLETE}
        return errors
    raise AssertionError("the run does not end")


def test_answer_that_breaks_a_rule_costs_no_calls(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = RuleScorer._compute

    def fail_at_one(scorer: RuleScorer, answer: Answer, contexts: Any) -> Any:
        if answer.question.position == 5:
            raise ValueError("broken")
        return compute(scorer, answer, contexts)

    settings.CONCORD_DISPATCHER = "django_q"
    monkeypatch.setattr(RuleScorer, "_compute", fail_at_one)
    with JudgeServer(latency=0.3) as server:
        settings.CONCORD_JUDGE_ORIGINS = [server.origin]
        run = remote_run(server, 12)
        start(run)
        assert drain_until_complete(run) == MAX_TRIES
    assert server.calls == 12
    units = WorkUnit.objects.filter(run=run)
    assert units.filter(kind=WorkUnit.Kind.JUDGE, state="done").count() == 12
    assert list(units.filter(state="failed").values_list("kind", "reason")) == [("rules", "crash_loop")]


def test_reply_that_breaks_its_reader_is_not_paid_for_without_end(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    triage = JudgeSession.triage

    def fail_at_one(session: JudgeSession, done: list[tuple[JudgeUnitCall, JudgeReply]]) -> Any:
        names = {call.unit.run_judge.judge_version.name for call, _ in done if call.unit.run_judge}
        if "second" in names and any(call.unit.answer and call.unit.answer.question.position == 1 for call, _ in done):
            raise ValueError("broken")
        return triage(session, done)

    settings.CONCORD_DISPATCHER = "django_q"
    monkeypatch.setattr(JudgeSession, "triage", fail_at_one)
    with JudgeServer(latency=0.1) as first, JudgeServer(latency=0.1) as second:
        settings.CONCORD_JUDGE_ORIGINS = [first.origin, second.origin]
        answers = make_answers(6)
        endpoint = Endpoint.objects.create(name="second", base_url=second.base_url)
        judge = save_judge(answers.project, "second", endpoint, model="judge-2", language="en")
        run = remote_run(first, answers, beside=[judge])
        start(run)
        drain_until_complete(run)
    assert first.calls == 6
    assert second.calls <= 6 * MAX_TRIES
    failed = WorkUnit.objects.filter(run=run, state="failed")
    assert list(failed.values_list("run_judge__judge_version__name", "reason")) == [("second", "crash_loop")]
