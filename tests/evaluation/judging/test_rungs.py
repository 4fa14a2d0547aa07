"""The four ways of asking over real sockets: different requests, one strict reading."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from evaluation.judging.calls import JudgeReply, ParsedReply, ResponseFormat
from evaluation.judging.prompt import parse_reply
from evaluation.judging.providers.openai import OpenAIJudge, request_body
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.samples import ALL, call
from tests.judge_server import JudgeServer, actions

VERDICT = '{"correctness": {"reason": "r", "score": 4}}'
WHOLE = '{"correctness": {"reason": "a", "score": 4}, "faithfulness": {"reason": "b", "score": 5}}'


def asked(server: JudgeServer, rung: ResponseFormat) -> tuple[JudgeReply, ParsedReply]:
    async def one() -> JudgeReply:
        async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin]) as client:
            return await client.call(replace(call(), response_format=rung))

    reply = asyncio.run(one())
    return reply, parse_reply(reply, call().judge_request, rung)


@pytest.mark.parametrize("rung", list(ResponseFormat))
def test_every_rung_gets_a_verdict_that_reads(judge_server: JudgeServer, rung: ResponseFormat) -> None:
    _, heard = asked(judge_server, rung)
    assert heard.outcome is Outcome.OK
    assert heard.parts.keys() == set(ALL)
    assert judge_server.requests[0].rung == rung


def test_a_tool_is_forced_and_strict() -> None:
    body = request_body(replace(call(), response_format=ResponseFormat.TOOL))
    (tool,) = body["tools"]
    assert tool["function"]["strict"] is True
    assert tool["function"]["parameters"]["additionalProperties"] is False
    assert body["tool_choice"] == {"type": "function", "function": {"name": tool["function"]["name"]}}
    assert "response_format" not in body


@pytest.mark.parametrize("rung", list(ResponseFormat))
def test_j1_prose_is_no_verdict_on_any_rung(judge_server: JudgeServer, rung: ResponseFormat) -> None:
    judge_server.enqueue(actions.text("I would give it a 4 of 5."))
    reply, heard = asked(judge_server, rung)
    assert heard.outcome is Outcome.PARSE
    assert reply.raw == "I would give it a 4 of 5."


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (f"Let me see.\n\nVERDICT: {VERDICT}", Outcome.OK),
        (f"VERDICT:{VERDICT}\n", Outcome.OK),
        (VERDICT, Outcome.PARSE),
        (f"VERDICT: {VERDICT}\nI hope this helps.", Outcome.PARSE),
        (f"The answer says\nVERDICT: {WHOLE}\nbut no.\nVERDICT: {VERDICT}", Outcome.PARSE),
        (f"So VERDICT: {VERDICT}", Outcome.PARSE),
        ("VERDICT: 4", Outcome.PARSE),
        (f"VERDICT: {VERDICT} {VERDICT}", Outcome.PARSE),
        ("", Outcome.PARSE),
    ],
)
def test_on_the_last_rung_the_verdict_is_the_last_line_and_nothing_else(text: str, outcome: Outcome) -> None:
    assert parse_reply(JudgeReply(Outcome.OK, raw=text), call().judge_request, ResponseFormat.TEXT).outcome is outcome


def test_two_tool_calls_are_no_verdict(judge_server: JudgeServer) -> None:
    called = {"type": "function", "function": {"name": "answer_quality", "arguments": VERDICT}}
    body = {"choices": [{"finish_reason": "stop", "message": {"content": None, "tool_calls": [called, called]}}]}
    judge_server.enqueue(actions.body(body))
    assert asked(judge_server, ResponseFormat.TOOL)[1].outcome is Outcome.PARSE


def test_a_tool_call_without_arguments_is_no_verdict(judge_server: JudgeServer) -> None:
    body = {"choices": [{"finish_reason": "stop", "message": {"content": VERDICT, "tool_calls": [{"function": 5}]}}]}
    judge_server.enqueue(actions.body(body))
    assert asked(judge_server, ResponseFormat.TOOL)[1].outcome is Outcome.PARSE
