"""Judge calls for an answer: the request as the server received it, beside its raw reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.accounts.erasure import purge_replies
from evaluation.core.roles import Role
from evaluation.models import Run
from evaluation.runs.call_log import LoggedCall, logged_calls
from tests.evaluation.runs.remote import make_answers, remote_run, start_and_drain
from tests.evaluation.scoring.families import make_baseline_run
from tests.factories import make_user
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]


@pytest.fixture
def judge(judge_server: JudgeServer, settings: Any) -> JudgeServer:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    return judge_server


def calls_of(run: Run) -> list[LoggedCall]:
    return logged_calls(run, run.answer_set.answers.get())


@pytest.mark.parametrize(
    "unsupported", [(), ("json_schema",), ("json_schema", "tool"), ("json_schema", "tool", "json_object")]
)
def test_request_is_shown_as_the_server_received_it(judge: JudgeServer, unsupported: tuple[str, ...]) -> None:
    if unsupported:
        judge.behave(actions.without(*unsupported))
    run = start_and_drain(remote_run(judge, 1))
    [call] = calls_of(run)
    [received] = judge.requests
    assert call.messages == received.body["messages"]
    assert (call.reply.outcome, call.reply.http_status, call.reply.model_returned) == ("ok", 200, "judge-1")
    assert json.loads(call.reply.raw.rpartition("VERDICT:")[2])


def test_repair_request_follows_the_unreadable_reply(judge: JudgeServer) -> None:
    run = remote_run(judge, 1)
    judge.when(
        lambda request: not request.is_preflight and len(request.body["messages"]) == 2, actions.text("No idea.")
    )
    start_and_drain(run)
    first, second = calls_of(run)
    assert (first.reply.outcome, first.reply.raw, second.reply.outcome) == ("parse", "No idea.", "ok")
    assert first.messages is not None
    assert second.messages is not None
    assert list(second.messages[: len(first.messages)]) == list(first.messages)
    assert len(second.messages) == len(first.messages) + 2


def test_page_and_rest_show_calls_to_people_who_may_view_the_run(judge: JudgeServer, client: Client) -> None:
    judge.otherwise = actions.verdicts("<b>wrong</b>", correctness=2, completeness=2, consistency=2)
    run = start_and_drain(remote_run(judge, 1))
    answer = run.answer_set.answers.get()
    page, rest = reverse("answer-calls", args=[answer.pk]), f"/api/v1/runs/{run.pk}/calls/?answer={answer.pk}"
    for role, status in ((Role.LEAD, 200), (Role.VIEWER, 200), (None, 404)):
        client.force_login(make_user(role, run.project))
        assert client.get(page).status_code == status
        assert client.get(rest).status_code == status
    client.force_login(make_user(Role.VIEWER, run.project))
    html = client.get(page).content.decode()
    assert "&lt;b&gt;wrong&lt;/b&gt;" in html
    assert "<b>wrong</b>" not in html
    call = client.get(rest).json()[0]
    assert call["messages"][0]["role"] == "system"
    assert call["raw"]
    assert call["tokens_in"] == 900


def test_purged_reply_leaves_the_request(judge: JudgeServer) -> None:
    run = start_and_drain(remote_run(judge, 1))
    purge_replies(timezone.now(), by=None)
    [call] = calls_of(run)
    assert call.messages
    assert call.reply.raw == ""


def test_baseline_makes_no_call(judge: JudgeServer) -> None:
    run = start_and_drain(make_baseline_run(make_answers(1)))
    assert calls_of(run) == []
