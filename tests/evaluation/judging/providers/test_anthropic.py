"""The Anthropic client: requests of the Messages API, replies, and what a server may send instead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.calls import JudgeReply, Price, ResponseFormat
from evaluation.judging.providers.anthropic import DEFAULT_MAX_TOKENS, AnthropicJudge, read_message
from evaluation.network.outcomes import Outcome, replace_unstorable
from evaluation.network.transport import HttpResponse
from tests.evaluation.judging.providers.native import KEY, probe, send, sent
from tests.evaluation.judging.samples import EN, parse_scores_reply, read_reply
from tests.judge_server import JudgeServer, actions
from tests.judge_server.wire import native_reply, respond


def message(*content: dict[str, Any], stop_reason: Any = "end_turn", **usage: Any) -> bytes:
    counts = {"input_tokens": 9, "output_tokens": 3, **usage}
    return json.dumps(
        {"type": "message", "model": "m-1", "content": content, "stop_reason": stop_reason, "usage": counts}
    ).encode()


TEXT = {"type": "text", "text": "{}"}


def test_call_is_one_request_with_key_version_and_schema(judge_server: JudgeServer) -> None:
    reply = send("anthropic", judge_server, None, native_reply())
    request = judge_server.requests[0]
    assert request.path == "/other/messages"
    assert (request.headers["x-api-key"], request.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "Authorization" not in request.headers
    assert request.body["model"] == "judge-1"
    assert request.body["temperature"] == 0
    assert request.body["max_tokens"] == DEFAULT_MAX_TOKENS
    assert [turn["role"] for turn in request.body["messages"]] == ["user"]
    assert request.body["system"].startswith(EN.instruction.split()[0])
    assert request.body["output_config"]["format"]["type"] == "json_schema"
    assert (reply.outcome, reply.http_status, reply.model_returned) == (Outcome.OK, 200, "judge-1")
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_cached, reply.tokens_reasoning) == (900, 60, 0, None)
    assert set(read_reply(reply)) == {"correctness", "faithfulness", "completeness"}
    assert parse_scores_reply(reply).outcome is Outcome.OK


def test_tool_and_text_formats(judge_server: JudgeServer) -> None:
    tool = sent("anthropic", judge_server, native_reply(), response_format=ResponseFormat.TOOL)
    assert tool.body["tool_choice"] == {"type": "tool", "name": "answer_quality", "disable_parallel_tool_use": True}
    assert tool.body["tools"][0]["input_schema"]["required"] == ["correctness", "faithfulness", "completeness"]
    assert "output_config" not in tool.body
    text = sent("anthropic", judge_server, native_reply(), response_format=ResponseFormat.TEXT)
    assert "JSON schema: {" in text.body["messages"][-1]["content"]
    assert not text.body.keys() & {"tools", "tool_choice", "output_config"}


def test_parameters_are_translated_and_cannot_replace_model_or_messages(judge_server: JudgeServer) -> None:
    parameters = {"max_tokens": 50, "stop": "END", "output_config": {"effort": "low"}, "model": "dear", "messages": []}
    body = sent("anthropic", judge_server, native_reply(), parameters=parameters).body
    assert (body["max_tokens"], body["stop_sequences"]) == (50, ["END"])
    assert body["output_config"].keys() == {"effort", "format"}
    assert body["model"] == "judge-1"
    assert len(body["messages"]) == 1
    assert "stop" not in body


@pytest.mark.parametrize(
    ("body", "outcome", "raw"),
    [
        (message(TEXT), Outcome.OK, "{}"),
        (message({"type": "thinking", "thinking": "hm"}, TEXT), Outcome.OK, "{}"),
        (message({"type": "tool_use", "input": {"a": "é"}}, stop_reason="tool_use"), Outcome.OK, '{"a": "é"}'),
        (message(TEXT, {"type": "tool_use", "input": {"a": 1}}), Outcome.OK, '{"a": 1}'),
        (message({"type": "tool_use", "input": {}}, {"type": "tool_use", "input": {}}), Outcome.OK, "{}\n{}"),
        (message(), Outcome.OK, ""),
        (message(stop_reason="refusal"), Outcome.REFUSED, ""),
        (message(TEXT, stop_reason="max_tokens"), Outcome.TRUNCATED, "{}"),
        (message(TEXT, stop_reason="model_context_window_exceeded"), Outcome.TRUNCATED, "{}"),
        (message(TEXT, stop_reason="pause_turn"), Outcome.UNKNOWN_ENDING, "{}"),
        (message(TEXT, stop_reason=7), Outcome.UNKNOWN_ENDING, "{}"),
    ],
)
def test_reply_is_text_or_tool_input(body: bytes, outcome: Outcome, raw: str) -> None:
    reply = read_message(body)
    assert (reply.outcome, reply.raw) == (outcome, raw)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[" * 9_000,
        b'{"content": {}}',
        b'{"content": [7]}',
        b'{"content": [{"type": "text"}]}',
        message({"type": "tool_use", "input": "@"}).replace(b'"@"', b'{"a": 1, "a": 2}'),
    ],
)
def test_response_of_another_form_is_wrong_content(body: bytes) -> None:
    assert read_message(body).outcome is Outcome.WRONG_CONTENT


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        # Cached input is counted apart: 9 + 90 = 99 tokens of input.
        ({"cache_read_input_tokens": 90}, (99, 3, 90, None)),
        ({"cache_read_input_tokens": None}, (9, 3, 0, None)),
        ({"output_tokens_details": {"thinking_tokens": 2}}, (9, 3, 0, 2)),
        # Written input has another price.
        ({"cache_creation_input_tokens": 5}, (None, 3, None, None)),
        ({"cache_read_input_tokens": "many"}, (None, 3, None, None)),
        ({"input_tokens": -1}, (None, 3, None, None)),
    ],
)
def test_token_counts(usage: dict[str, Any], counts: tuple[int | None, ...]) -> None:
    reply = read_message(message(TEXT, **usage))
    assert (reply.tokens_in, reply.tokens_out) == counts[:2]
    assert reply.tokens_cached == counts[2] or counts[2] is None
    assert reply.tokens_reasoning == counts[3]


def test_cost_counts_cached_input_at_its_price() -> None:
    reply = read_message(message(TEXT, cache_read_input_tokens=91, input_tokens=9, output_tokens=10))
    price = Price(model="m-1", since="2026-01-01", input="1", cached="0.1", output="10")
    # (9 * 1 + 91 * 0.1 + 10 * 10) / 1,000,000 = 118.1 / 1,000,000
    assert str(price.cost(reply)) == "0.0001181"


@pytest.mark.parametrize(
    ("status", "error", "outcome"),
    [
        (402, {"type": "billing_error"}, Outcome.NO_CREDIT),
        (400, {"type": "invalid_request_error", "message": "Your credit balance is too low."}, Outcome.NO_CREDIT),
        (429, {"type": "rate_limit_error", "details": {"error_code": "contract_spend_limit_reached"}}, "no_credit"),
        (413, {"type": "request_too_large"}, Outcome.BAD_REQUEST),
    ],
)
def test_error_of_an_empty_account_needs_action(status: int, error: dict[str, Any], outcome: str) -> None:
    body = json.dumps({"type": "error", "error": error}).encode()
    assert read(status, body).outcome == outcome


def read(status: int, body: bytes) -> JudgeReply:
    judge = AnthropicJudge(base_url="https://a.example", allowed_origins=["https://a.example"])
    return judge.read(HttpResponse(status, {}, body))


def test_preflight_finds_the_best_format_that_the_model_takes(judge_server: JudgeServer) -> None:
    strict = probe("anthropic", judge_server, native_reply())
    assert (strict.outcome, strict.response_format, len(strict.probes)) == ("ok", ResponseFormat.JSON_SCHEMA, 1)
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "output_config: no"}}

    async def without_schema(request: Any, http: Any) -> Any:
        action = respond(400, error) if request.response_format == "json_schema" else native_reply()
        return await action(request, http)

    assert probe("anthropic", judge_server, without_schema).response_format is ResponseFormat.TOOL

    async def text_only(request: Any, http: Any) -> Any:
        return await (native_reply() if request.response_format == "text" else respond(400, error))(request, http)

    assert probe("anthropic", judge_server, text_only).response_format is ResponseFormat.TEXT
    none = probe("anthropic", judge_server, respond(400, error))
    assert none.reason == "no_rung: HTTP 400 invalid_request_error: output_config: no"


def test_key_is_removed_from_an_error_that_repeats_it(judge_server: JudgeServer) -> None:
    reply = send("anthropic", judge_server, None, actions.status(401, body=f'"{KEY}"'))
    assert (reply.outcome, reply.raw) == (Outcome.UNAUTHORISED, '"…"')


@given(st.binary() | st.text(st.characters()).map(lambda text: json.dumps(text).encode()))
def test_no_body_raises_and_every_reply_can_be_stored(body: bytes) -> None:
    for status in (200, 500):
        reply = read(status, body)
        assert replace_unstorable(reply.raw) == reply.raw
