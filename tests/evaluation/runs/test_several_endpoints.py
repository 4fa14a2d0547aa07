"""Judges of one run at several endpoints: their calls are in flight at once."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from aiohttp import web

from evaluation.judges.shipped import baseline_judge, save_judge
from evaluation.models import Endpoint, Reply, Run, Score
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
