"""Replies of chat models: finish reasons, errors inside a 200, and typed content. Truncated, filtered or unexplained
endings never count as whole answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from evaluation.connectors.catalogue import CONNECTORS, read_settings
from evaluation.connectors.protocol import OperatorPolicy, SystemCall, SystemReply
from evaluation.core.samples import QuestionSpec
from evaluation.network.outcomes import Outcome
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server

__all__ = ["judge_server"]

CALL = SystemCall(QuestionSpec(id="q1", category="c", text="How long is the notice period?"))


def ask(server: JudgeServer, action: actions.Action, *, stream: bool = False) -> SystemReply:
    server.behave(action)
    settings = read_settings(
        CONNECTORS["chat"], {"base_url": server.base_url, "model": "m", "stream": stream, "timeout_seconds": 5.0}
    )

    async def send_call() -> SystemReply:
        async with CONNECTORS["chat"].open(settings, OperatorPolicy([server.origin])) as client:
            return await client.call(CALL)

    return asyncio.run(send_call())


def events(*values: Any) -> actions.Action:
    """A stream of these events."""

    async def act(_: Any, __: web.Request) -> web.StreamResponse:
        lines = [f"data: {json.dumps(value)}\n\n" for value in values] + ["data: [DONE]\n\n"]
        return web.Response(text="".join(lines), content_type="text/event-stream")

    return act


def delta(content: Any, finish_reason: Any = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": content}, "finish_reason": finish_reason}]}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("finish_reason", "reason"),
    [
        ("stop", ""),
        ("STOP", ""),
        ("eos_token", ""),
        (None, ""),
        ("length", "truncated"),
        ("MAX_TOKENS", "truncated"),
        ("model_length", "truncated"),
        ("content_filter", "filtered"),
        ("SAFETY", "filtered"),
        ("refusal", "model_refused"),
        ("error", "server_error"),
        ("tool_calls", "no_answer: the model called a tool"),
        ("pause_turn", "unknown_ending: pause_turn"),
        ("tired", "unknown_ending: tired"),
    ],
)
def test_only_complete_answers_are_accepted(
    judge_server: JudgeServer, finish_reason: Any, reason: str, stream: bool
) -> None:
    action = (
        events(delta("Four weeks"), delta("", finish_reason))
        if stream
        else actions.text("Four weeks", finish_reason=finish_reason)
    )
    reply = ask(judge_server, action, stream=stream)
    assert reply.reason == reason
    assert (reply.content.answer.text if reply.content else "") == ("" if reason else "Four weeks")


@pytest.mark.parametrize(
    ("body", "outcome", "reason"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, Outcome.RATE_LIMITED, "rate_limited: 429 slow down"),
        (
            {"choices": None, "error": {"code": 402, "message": "no credit"}},
            Outcome.NO_CREDIT,
            "no_credit: 402 no credit",
        ),
        ({"choices": [{"error": {"code": 503}, "message": {"content": "Fo"}}]}, Outcome.OVERLOADED, "overloaded: 503"),
        ({"object": "error", "message": "bad", "code": 400}, Outcome.BAD_REQUEST, "bad_request: 400 bad"),
        ({"error": "gone"}, Outcome.SERVER_ERROR, "server_error: gone"),
    ],
)
def test_an_error_inside_a_200_is_no_answer(
    judge_server: JudgeServer, body: Any, outcome: Outcome, reason: str
) -> None:
    reply = ask(judge_server, actions.body(body))
    assert (reply.content, reply.outcome, reply.reason) == (None, outcome, reason)


THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}


def test_text_parts_are_the_answer_and_thinking_is_not(judge_server: JudgeServer) -> None:
    parts = [THINKING, {"type": "text", "text": "Four "}, {"type": "text", "text": "weeks"}]
    body = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    reply = ask(judge_server, actions.body(body))
    assert reply.content is not None
    assert reply.content.answer.text == "Four weeks"


def test_a_stream_of_parts_is_joined(judge_server: JudgeServer) -> None:
    text = [{"type": "text", "text": "Four"}]
    reply = ask(judge_server, events(delta([THINKING]), delta(text), delta(" weeks"), delta([], "stop")), stream=True)
    assert reply.content is not None
    assert reply.content.answer.text == "Four weeks"


@pytest.mark.parametrize("content", [[{"type": "image_url", "image_url": {}}], 5, {"answer": "Four weeks"}])
def test_content_without_text_is_no_answer(judge_server: JudgeServer, content: Any) -> None:
    body = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    reply = ask(judge_server, actions.body(body))
    assert (reply.content, reply.outcome) == (None, Outcome.WRONG_CONTENT)


def test_refusal_part_is_the_reason(judge_server: JudgeServer) -> None:
    parts = [{"type": "refusal", "refusal": "I cannot help."}]
    body = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    assert ask(judge_server, actions.body(body)).reason == "model_refused: I cannot help."


def test_token_counts_are_the_billed_ones(judge_server: JudgeServer) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 305}
    reply = ask(judge_server, actions.text("Four weeks", usage=usage))
    assert (reply.tokens_in, reply.tokens_out) == (100, 205)


def test_reply_without_json_names_its_content_type(judge_server: JudgeServer) -> None:
    assert ask(judge_server, actions.html()).reason.startswith("wrong_content: not valid JSON, content type text/html")
