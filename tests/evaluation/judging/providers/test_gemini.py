"""The Gemini client: requests of ``generateContent``, replies, and what a server may send instead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.calls import JudgeReply, Price, ResponseFormat
from evaluation.judging.prompt import repair_call
from evaluation.judging.providers.gemini import GeminiJudge, read_content
from evaluation.network.outcomes import Outcome, replace_unstorable
from evaluation.network.transport import HttpResponse
from tests.evaluation.judging.providers.native import KEY, probe, send, sent
from tests.evaluation.judging.samples import EN, call, read_reply
from tests.judge_server import JudgeServer
from tests.judge_server.wire import native_reply, respond


def content(*parts: Any, finish_reason: Any = "STOP", **usage: Any) -> bytes:
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12, **usage}
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish_reason}
    return json.dumps({"candidates": [candidate], "usageMetadata": counts, "modelVersion": "g-1"}).encode()


def test_call_is_one_request_with_key_and_schema(judge_server: JudgeServer) -> None:
    reply = send("gemini", judge_server, None, native_reply())
    request = judge_server.requests[0]
    assert request.path == "/other/models/judge-1:generateContent"
    assert (request.headers["x-goog-api-key"], "Authorization" in request.headers) == (KEY, False)
    assert request.body["generationConfig"].keys() == {"temperature", "responseMimeType", "responseJsonSchema"}
    assert request.body["systemInstruction"]["parts"][0]["text"].startswith(EN.instruction.split()[0])
    assert [turn["role"] for turn in request.body["contents"]] == ["user"]
    assert (reply.outcome, reply.model_returned) == (Outcome.OK, "judge-1")
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_cached, reply.tokens_reasoning) == (900, 60, 0, 0)
    assert set(read_reply(reply)) == {"correctness", "faithfulness", "completeness"}


def test_body_in_each_format(judge_server: JudgeServer) -> None:
    tool = sent("gemini", judge_server, native_reply(), response_format=ResponseFormat.TOOL).body
    calling = {"mode": "ANY", "allowedFunctionNames": ["answer_quality"]}
    assert tool["toolConfig"] == {"functionCallingConfig": calling}
    assert tool["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["type"] == "object"
    json_object = sent("gemini", judge_server, native_reply(), response_format=ResponseFormat.JSON_OBJECT).body
    assert json_object["generationConfig"]["responseMimeType"] == "application/json"
    assert "responseJsonSchema" not in json_object["generationConfig"]
    text = sent("gemini", judge_server, native_reply(), response_format=ResponseFormat.TEXT).body
    assert text["generationConfig"] == {"temperature": 0}
    assert "VERDICT:" in text["contents"][0]["parts"][0]["text"]


def test_parameters_are_translated(judge_server: JudgeServer) -> None:
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    parameters = {"max_tokens": 50, "top_p": 0.5, "seed": 7, "stop": "END", "safetySettings": safety}
    body = sent("gemini", judge_server, native_reply(), parameters=parameters, model="models/g 1").body
    assert judge_server.requests[-1].path == "/other/models/g 1:generateContent"
    assert body["safetySettings"] == safety
    config = {"maxOutputTokens": 50, "topP": 0.5, "seed": 7, "stopSequences": ["END"]}
    assert config.items() <= body["generationConfig"].items()


def test_turns_of_the_judge_have_the_role_model(judge_server: JudgeServer) -> None:
    send("gemini", judge_server, repair_call(call(), Outcome.PARSE), native_reply())
    assert [turn["role"] for turn in judge_server.requests[0].body["contents"]] == ["user", "model", "user"]


@pytest.mark.parametrize(
    ("body", "outcome", "raw"),
    [
        (content({"text": "{"}, {"text": "}"}), Outcome.OK, "{}"),
        (content({"text": "hm", "thought": True}, {"text": "{}"}), Outcome.OK, "{}"),
        (content({"functionCall": {"name": "n", "args": {"a": 1}}}), Outcome.OK, '{"a": 1}'),
        (content({"text": "{"}, finish_reason="MAX_TOKENS"), Outcome.TRUNCATED, "{"),
        (content(finish_reason="SAFETY"), Outcome.FILTERED, ""),
        (content(finish_reason="MODEL_ARMOR"), Outcome.FILTERED, ""),
        (content(finish_reason="MALFORMED_FUNCTION_CALL"), Outcome.PARSE, ""),
        (content(finish_reason="OTHER"), Outcome.UNKNOWN_ENDING, ""),
        (b'{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}', Outcome.FILTERED, "PROHIBITED_CONTENT"),
        (b'{"usageMetadata": {"promptTokenCount": 9}}', Outcome.SERVER_ERROR, ""),
        (b'{"candidates": [{"finishReason": "MAX_TOKENS"}]}', Outcome.TRUNCATED, ""),
    ],
)
def test_reply_is_text_or_function_arguments(body: bytes, outcome: Outcome, raw: str) -> None:
    reply = read_content(body)
    assert (reply.outcome, reply.raw) == (outcome, raw)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b"7", content({"text": 7})])
def test_response_of_another_form_is_wrong_content(body: bytes) -> None:
    assert read_content(body).outcome is Outcome.WRONG_CONTENT


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        # Thinking counts as output: 3 + 20 = 23.
        ({"thoughtsTokenCount": 20, "totalTokenCount": 32, "cachedContentTokenCount": 4}, (9, 23, 4, 20)),
        # A count of zero is left out.
        ({"candidatesTokenCount": None, "totalTokenCount": 9}, (9, 0, 0, 0)),
        # 5 tokens that no part names are output too.
        ({"totalTokenCount": 17}, (9, 8, 0, 0)),
        ({"totalTokenCount": 11}, (9, None, 0, 0)),
        ({"promptTokenCount": "9"}, (None, None, None, None)),
    ],
)
def test_token_counts(usage: dict[str, Any], counts: tuple[int | None, ...]) -> None:
    reply = read_content(content({"text": "{}"}, **usage))
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_cached, reply.tokens_reasoning) == counts


def test_cost_counts_thinking_as_output_and_cached_input_at_its_price() -> None:
    counts = {"promptTokenCount": 100, "cachedContentTokenCount": 90, "thoughtsTokenCount": 7, "totalTokenCount": 110}
    price = Price(model="g-1", since="2026-01-01", input="1", cached="0.1", output="10")
    # (10 * 1 + 90 * 0.1 + (3 + 7) * 10) / 1,000,000 = 119 / 1,000,000
    assert price.cost(read_content(content({"text": "{}"}, **counts))) * 1_000_000 == 119


def read(status: int, body: bytes) -> JudgeReply:
    judge = GeminiJudge(base_url="https://g.example", allowed_origins=["https://g.example"])
    return judge.read(HttpResponse(status, {}, body))


@pytest.mark.parametrize(
    ("details", "outcome", "retry_after"),
    [
        ([{"reason": "API_KEY_INVALID"}], Outcome.UNAUTHORISED, None),
        ([{"@type": "x"}, {"retryDelay": "34.5s"}], Outcome.BAD_REQUEST, 34.5),
        ([{"retryDelay": {}}], Outcome.BAD_REQUEST, None),
        ("details", Outcome.BAD_REQUEST, None),
    ],
)
def test_details_of_an_error_name_the_key_and_the_wait(
    details: Any, outcome: Outcome, retry_after: float | None
) -> None:
    error = {"code": 400, "status": "INVALID_ARGUMENT", "message": "No.", "details": details}
    reply = read(400, json.dumps({"error": error}).encode())
    assert (reply.outcome, reply.retry_after) == (outcome, retry_after)


def test_preflight_finds_the_best_format_that_the_model_takes(judge_server: JudgeServer) -> None:
    assert probe("gemini", judge_server, native_reply()).response_format is ResponseFormat.JSON_SCHEMA
    refused = respond(400, {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "JSON mode is off"}})

    async def text_only(request: Any, http: Any) -> Any:
        plain = request.response_format == "text" and "generationConfig" not in request.body
        return await (native_reply() if plain else refused)(request, http)

    assert probe("gemini", judge_server, text_only).response_format is ResponseFormat.TEXT


@given(st.binary() | st.text(st.characters()).map(lambda text: json.dumps(text).encode()))
def test_no_body_raises_and_every_reply_can_be_stored(body: bytes) -> None:
    for status in (200, 500):
        reply = read(status, body)
        assert replace_unstorable(reply.raw) == reply.raw
