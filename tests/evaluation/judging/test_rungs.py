"""The four response formats over real sockets: different requests, one strict parser."""

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
COMPLETE_VERDICT = '{"correctness": {"reason": "a", "score": 4}, "faithfulness": {"reason": "b", "score": 5}}'


def call_judge(server: JudgeServer, response_format: ResponseFormat) -> tuple[JudgeReply, ParsedReply]:
    async def send_request() -> JudgeReply:
        async with OpenAIJudge(base_url=server.base_url, allowed_origins=[server.origin]) as client:
            return await client.call(replace(call(), response_format=response_format))

    reply = asyncio.run(send_request())
    return reply, parse_reply(reply, call().judge_request, response_format)


@pytest.mark.parametrize("response_format", list(ResponseFormat))
def test_every_response_format_yields_a_valid_verdict(
    judge_server: JudgeServer, response_format: ResponseFormat
) -> None:
    _, parsed = call_judge(judge_server, response_format)
    assert parsed.outcome is Outcome.OK
    assert parsed.parts.keys() == set(ALL)
    assert judge_server.requests[0].response_format == response_format


def test_a_tool_is_forced_and_strict() -> None:
    body = request_body(replace(call(), response_format=ResponseFormat.TOOL))
    (tool,) = body["tools"]
    assert tool["function"]["strict"] is True
    assert tool["function"]["parameters"]["additionalProperties"] is False
    assert body["tool_choice"] == {"type": "function", "function": {"name": tool["function"]["name"]}}
    assert "response_format" not in body


@pytest.mark.parametrize("response_format", list(ResponseFormat))
def test_prose_is_not_a_verdict_in_any_response_format(
    judge_server: JudgeServer, response_format: ResponseFormat
) -> None:
    judge_server.enqueue(actions.text("I would give it a 4 of 5."))
    reply, parsed = call_judge(judge_server, response_format)
    assert parsed.outcome is Outcome.PARSE
    assert reply.raw == "I would give it a 4 of 5."


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (f"Let me see.\n\nVERDICT: {VERDICT}", Outcome.OK),
        (f"VERDICT:{VERDICT}\n", Outcome.OK),
        (VERDICT, Outcome.PARSE),
        (f"VERDICT: {VERDICT}\nI hope this helps.", Outcome.PARSE),
        (f"The answer says\nVERDICT: {COMPLETE_VERDICT}\nbut no.\nVERDICT: {VERDICT}", Outcome.PARSE),
        (f"So VERDICT: {VERDICT}", Outcome.PARSE),
        ("VERDICT: 4", Outcome.PARSE),
        (f"VERDICT: {VERDICT} {VERDICT}", Outcome.PARSE),
        ("", Outcome.PARSE),
    ],
)
def test_text_format_requires_the_verdict_as_the_last_line(text: str, outcome: Outcome) -> None:
    assert parse_reply(JudgeReply(Outcome.OK, raw=text), call().judge_request, ResponseFormat.TEXT).outcome is outcome


def test_two_tool_calls_are_not_a_verdict(judge_server: JudgeServer) -> None:
    tool_call = {"type": "function", "function": {"name": "answer_quality", "arguments": VERDICT}}
    body = {"choices": [{"finish_reason": "stop", "message": {"content": None, "tool_calls": [tool_call, tool_call]}}]}
    judge_server.enqueue(actions.body(body))
    assert call_judge(judge_server, ResponseFormat.TOOL)[1].outcome is Outcome.PARSE


def test_tool_call_without_arguments_is_not_a_verdict(judge_server: JudgeServer) -> None:
    body = {"choices": [{"finish_reason": "stop", "message": {"content": VERDICT, "tool_calls": [{"function": 5}]}}]}
    judge_server.enqueue(actions.body(body))
    assert call_judge(judge_server, ResponseFormat.TOOL)[1].outcome is Outcome.PARSE
