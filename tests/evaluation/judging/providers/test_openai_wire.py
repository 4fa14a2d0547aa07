from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.calls import ResponseFormat, quote_server_message
from evaluation.judging.formulas import scores_request
from evaluation.judging.providers.openai import read_completion, read_error, request_body
from evaluation.network.outcomes import Outcome, replace_unstorable
from tests.evaluation.judging.samples import EN, call

JSON = "application/json"


def completion(content: Any = "{}", finish_reason: Any = "stop", **fields: Any) -> bytes:
    message = {"role": "assistant", "content": content, "refusal": fields.pop("refusal", None)}
    body = {"model": "judge-1", "choices": [{"finish_reason": finish_reason, "message": message}], **fields}
    return json.dumps(body).encode()


def test_the_body_asks_for_the_strict_schema_without_streaming() -> None:
    body = request_body(call(max_completion_tokens=900))
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["response_format"]["json_schema"]["schema"] == scores_request(EN, EN.names, {}).schema
    assert (body["model"], body["temperature"], body["max_completion_tokens"]) == ("judge-1", 0, 900)
    assert body["stream"] is False


def test_a_judges_parameters_cannot_replace_model_messages_or_streaming() -> None:
    body = request_body(replace(call(), parameters={"model": "dear-one", "messages": [], "stream": True}))
    assert body["model"] == "judge-1"
    assert len(body["messages"]) == 2
    assert body["stream"] is False


@pytest.mark.parametrize(
    ("supported_format", "expected_format"),
    [(ResponseFormat.JSON_OBJECT, {"type": "json_object"}), (ResponseFormat.TEXT, None)],
)
def test_without_schema_support_the_schema_ends_the_prompt(
    supported_format: ResponseFormat, expected_format: Any
) -> None:
    request = replace(call(), response_format=supported_format)
    body = request_body(request)
    assert body.get("response_format") == expected_format
    assert (
        json.loads(body["messages"][-1]["content"].rpartition("JSON schema: ")[2])
        == scores_request(EN, EN.names, {}).schema
    )
    assert "JSON schema" not in request.rendered.messages[-1]["content"]


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (completion(), Outcome.OK),
        (completion("", "stop"), Outcome.OK),
        (completion('{"corr', "length"), Outcome.TRUNCATED),
        (completion(None, "content_filter"), Outcome.FILTERED),
        (completion(None, "stop", refusal="No."), Outcome.REFUSED),
        (completion(["parts"]), Outcome.OK),
        (completion([{"type": "text", "text": "{}"}], "end_turn"), Outcome.OK),
        (completion([{"type": "image"}]), Outcome.WRONG_CONTENT),
        (completion(5), Outcome.WRONG_CONTENT),
        (completion('{"corr', "MAX_TOKENS"), Outcome.TRUNCATED),
        (completion("{}", "who_knows"), Outcome.UNKNOWN_ENDING),
        (completion("{}", "error"), Outcome.SERVER_ERROR),
        (b"", Outcome.WRONG_CONTENT),
        (b"<html>", Outcome.WRONG_CONTENT),
        (b'{"choices": []}', Outcome.SERVER_ERROR),
        (b'{"choices": null}', Outcome.SERVER_ERROR),
        (b'{"object": "list"}', Outcome.WRONG_CONTENT),
        (b'{"error": {"code": 429}, "choices": null}', Outcome.RATE_LIMITED),
        (b'{"choices": [{"error": {"code": 502}, "message": {"content": ""}}]}', Outcome.SERVER_ERROR),
        (b'{"choices": [null]}', Outcome.WRONG_CONTENT),
        (b'{"error": {"message": "in a 200"}}', Outcome.SERVER_ERROR),
        (b"[" * 100_000, Outcome.WRONG_CONTENT),
        (b"\xff\xfe\x00", Outcome.WRONG_CONTENT),
    ],
)
def test_response_with_status_200_is_validated(body: bytes, outcome: Outcome) -> None:
    assert read_completion(body, JSON).outcome is outcome


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "text/plain", "application/octet-stream", ""])
def test_json_is_read_under_any_content_type(kind: str) -> None:
    assert read_completion(completion(), kind).outcome is Outcome.OK


def test_response_that_is_not_json_names_its_content_type() -> None:
    assert quote_server_message(read_completion(b"<html>\nhello", "text/html")) == "HTTP 200 text/html: <html>"
    assert quote_server_message(read_completion(completion(None), JSON)) == "HTTP 200: empty text"
    assert quote_server_message(read_completion(completion("{}", "tired"), JSON)) == "HTTP 200 finish_reason tired: {}"
    refused = json.dumps({"error": {"message": "No temperature.", "code": "unsupported_value"}}).encode()
    assert quote_server_message(read_error(400, refused)) == "HTTP 400 unsupported_value: No temperature."


def test_content_and_arguments_may_be_objects_instead_of_text() -> None:
    verdict = {"correctness": {"reason": "r", "score": 4}}
    function = {"name": "answer_quality", "arguments": verdict}
    tool_call = {"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [{"function": function}]}}]}
    for body in (completion(verdict), json.dumps(tool_call).encode()):
        assert json.loads(read_completion(body, JSON).raw) == verdict
    duplicate_keys = completion("@").replace(b'"@"', b'{"correctness": 1, "correctness": 5}')
    assert read_completion(duplicate_keys, JSON).outcome is Outcome.WRONG_CONTENT


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 3}, (9, 3, None, None)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            (9, 3, 8, 2),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 10}},
            (9, 3, None, None),
        ),
        ({"prompt_tokens": -1, "completion_tokens": 10**12}, (None, None, None, None)),
        ({"prompt_tokens": True, "completion_tokens": "3"}, (None, None, None, None)),
        ({"prompt_tokens": 1.5, "completion_tokens": None, "prompt_tokens_details": 7}, (None, None, None, None)),
        (None, (None, None, None, None)),
        ([], (None, None, None, None)),
    ],
)
def test_token_counts_are_unknown_if_inconsistent(usage: Any, counts: tuple[Any, ...]) -> None:
    reply = read_completion(completion(usage=usage), JSON)
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_cached, reply.tokens_reasoning) == counts


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (301, "", Outcome.REDIRECT),
        (307, "", Outcome.REDIRECT),
        (400, "", Outcome.BAD_REQUEST),
        (400, "content_filter", Outcome.FILTERED),
        (401, "invalid_api_key", Outcome.UNAUTHORISED),
        (402, "", Outcome.NO_CREDIT),
        (403, "", Outcome.FORBIDDEN),
        (404, "model_not_found", Outcome.NOT_FOUND),
        (408, "", Outcome.TIMEOUT),
        (422, "", Outcome.BAD_REQUEST),
        (429, "rate_limit_exceeded", Outcome.RATE_LIMITED),
        (429, "insufficient_quota", Outcome.NO_CREDIT),
        (500, "", Outcome.SERVER_ERROR),
        (503, "", Outcome.OVERLOADED),
        (529, "", Outcome.OVERLOADED),
    ],
)
def test_error_response_maps_to_its_outcome(status: int, code: str, outcome: Outcome) -> None:
    assert read_error(status, json.dumps({"error": {"code": code}}).encode()).outcome is outcome


def test_error_page_is_truncated_and_classified_by_status() -> None:
    reply = read_error(502, b"<html>" + b"x" * 10_000 + b"\0")
    assert reply.outcome is Outcome.SERVER_ERROR
    assert len(reply.raw) == 4_000


@given(st.binary() | st.text().map(completion) | st.text(st.characters()).map(lambda t: json.dumps(t).encode()))
def test_no_body_raises_and_every_reply_can_be_stored(body: bytes) -> None:
    for reply in (read_completion(body, JSON), read_error(500, body)):
        assert replace_unstorable(reply.raw) == reply.raw
        reply.raw.encode("utf-8")
