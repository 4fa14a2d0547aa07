"""Responses of servers with OpenAI's API: finish reasons, errors, content types and token counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.network.completions import (
    FinishReason,
    Usage,
    classify_finish_reason,
    content_text,
    finish_outcome,
    has_duplicate_keys,
    read_server_error,
    read_usage,
    refusal_text,
    server_message,
)
from evaluation.network.outcomes import Outcome


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("stop", Outcome.OK),
        ("STOP", Outcome.OK),
        ("eos_token", Outcome.OK),
        ("end_turn", Outcome.OK),
        ("COMPLETE", Outcome.OK),
        ("tool_calls", Outcome.OK),
        (None, Outcome.OK),
        ("", Outcome.OK),
        ("length", Outcome.TRUNCATED),
        ("Max-Tokens", Outcome.TRUNCATED),
        ("MAX_TOKENS", Outcome.TRUNCATED),
        ("FinishReason.MAX_TOKENS", Outcome.TRUNCATED),
        ("model_length", Outcome.TRUNCATED),
        ("max_output_tokens", Outcome.TRUNCATED),
        ("model_context_window_exceeded", Outcome.TRUNCATED),
        ("content_filter", Outcome.FILTERED),
        ("content-filter", Outcome.FILTERED),
        ("SAFETY", Outcome.FILTERED),
        ("RECITATION", Outcome.FILTERED),
        ("PROHIBITED_CONTENT", Outcome.FILTERED),
        ("guardrail_intervened", Outcome.FILTERED),
        ("refusal", Outcome.REFUSED),
        ("malformed_function_call", Outcome.PARSE),
        ("error", Outcome.SERVER_ERROR),
        ("insufficient_system_resource", Outcome.SERVER_ERROR),
        ("abort", Outcome.SERVER_ERROR),
        ("pause_turn", Outcome.UNKNOWN_ENDING),
        ("because", Outcome.UNKNOWN_ENDING),
        (2, Outcome.UNKNOWN_ENDING),
        (["stop"], Outcome.UNKNOWN_ENDING),
        (True, Outcome.UNKNOWN_ENDING),
    ],
)
def test_finish_reasons_map_to_outcomes(reason: Any, outcome: Outcome) -> None:
    assert finish_outcome(classify_finish_reason(reason)) is outcome


@given(st.text(min_size=1).filter(str.strip))
def test_unlisted_finish_reason_is_unknown(word: str) -> None:
    ending = classify_finish_reason(f"zz {word}")
    assert ending is FinishReason.UNKNOWN


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"error": {"code": 429, "message": "Too many"}}, Outcome.RATE_LIMITED),
        ({"error": {"code": "503"}}, Outcome.OVERLOADED),
        ({"error": {"code": 402, "message": "No credits"}, "user_id": "u"}, Outcome.NO_CREDIT),
        ({"error": {"code": 401}}, Outcome.UNAUTHORISED),
        ({"error": {"status": "RESOURCE_EXHAUSTED"}}, Outcome.RATE_LIMITED),
        ({"error": {"type": "overloaded_error"}}, Outcome.OVERLOADED),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}, Outcome.RATE_LIMITED),
        ({"error": {"code": "insufficient_quota", "type": "insufficient_quota"}}, Outcome.NO_CREDIT),
        ({"error": {"code": 429, "type": "insufficient_quota"}}, Outcome.NO_CREDIT),
        ({"object": "error", "message": "bad", "type": "BadRequestError", "code": 400}, Outcome.BAD_REQUEST),
        ({"error": {"type": "invalid_request_error", "message": "bad"}}, Outcome.BAD_REQUEST),
        ([{"error": {"code": 403, "status": "PERMISSION_DENIED"}}], Outcome.FORBIDDEN),
        ({"error": "the model went away"}, Outcome.SERVER_ERROR),
        ({"error": {"message": "of an unknown kind", "code": "e_17"}}, Outcome.SERVER_ERROR),
        ({"finish_reason": "error", "error": {"code": 502, "message": "upstream"}}, Outcome.SERVER_ERROR),
        ({"error": {"code": "json_validate_failed"}}, Outcome.PARSE),
    ],
)
def test_error_inside_a_200_is_classified_by_its_code(body: Any, outcome: Outcome) -> None:
    error = read_server_error(body)
    assert error is not None
    assert error.outcome() is outcome


@pytest.mark.parametrize(
    "body", [{}, {"error": None}, {"error": {}}, {"error": ""}, {"choices": []}, "error", None, 5, [], {"error": 5}]
)
def test_body_without_an_error_has_none(body: Any) -> None:
    assert read_server_error(body) is None


@pytest.mark.parametrize(
    ("status", "error", "outcome"),
    [
        (400, {"code": "json_validate_failed"}, Outcome.PARSE),
        (400, {"code": "tool_use_failed", "message": "m"}, Outcome.PARSE),
        (400, {"message": "x", "failed_generation": '{"a"'}, Outcome.PARSE),
        (422, {"message": "The model did not output valid JSON.", "code": 422}, Outcome.PARSE),
        (400, {"code": "output_parse_failed"}, Outcome.PARSE),
        (400, {"message": "We could not parse the JSON body of your request."}, Outcome.BAD_REQUEST),
        (400, {"code": "invalid_json_schema"}, Outcome.BAD_REQUEST),
        (400, {"code": "context_length_exceeded"}, Outcome.BAD_REQUEST),
        (400, {"code": "400", "innererror": {"code": "ResponsibleAIPolicyViolation"}}, Outcome.FILTERED),
        (404, {"code": "DeploymentNotFound"}, Outcome.NOT_FOUND),
        (429, {"code": "insufficient_quota"}, Outcome.NO_CREDIT),
        (401, {"type": "invalid_request_error", "code": "invalid_api_key"}, Outcome.UNAUTHORISED),
        (500, {"code": 500, "message": "list index out of range"}, Outcome.SERVER_ERROR),
    ],
)
def test_error_codes_refine_the_status_only_if_exact(status: int, error: Any, outcome: Outcome) -> None:
    server_error = read_server_error({"error": error})
    assert server_error is not None
    assert server_error.outcome(status) is outcome


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([{"type": "text", "text": "one "}, {"type": "text", "text": "two"}], "one two"),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "so"}], "so"),
        ([{"type": "reasoning", "text": "hm"}, {"type": "output_text", "text": "so", "annotations": []}], "so"),
        ([{"thought": True, "text": "hm"}, {"text": "so"}], "so"),
        ([{"type": "text", "text": {"value": "so", "annotations": []}}], "so"),
        (["a", "b"], "ab"),
        ([], ""),
        ({"type": "text", "text": "so"}, "so"),
        ({"correctness": {"reason": "r", "score": 4}}, '{"correctness": {"reason": "r", "score": 4}}'),
        ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "so"}], None),
        ([{"type": "text"}], None),
        ([7], None),
        (7, None),
        (True, None),
    ],
)
def test_unambiguous_content_is_read_as_text(content: Any, text: str | None) -> None:
    assert content_text(content) == text


def test_duplicate_keys_are_detected_at_any_depth() -> None:
    assert has_duplicate_keys(b'{"a": [{"b": 1, "b": 2}]}')
    assert not has_duplicate_keys(b'{"a": [{"b": 1}, {"b": 2}]}')


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        ({"refusal": " No. "}, "No."),
        ({"content": [{"type": "refusal", "refusal": "I can't."}]}, "I can't."),
        ({"refusal": None, "content": "x"}, ""),
        ({"refusal": ""}, ""),
        (None, ""),
    ],
)
def test_refusal_is_read_from_message_or_part(message: Any, refusal: str) -> None:
    assert refusal_text(message) == refusal


def usage(prompt: Any, completion: Any, total: Any = None, cached: Any = None, reasoning: Any = None) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


@pytest.mark.parametrize(
    ("raw_usage", "tokens_out"),
    [
        (usage(700, 40, 740), 40),
        (usage(700, 40), 40),
        (usage(700, 40, 1240, reasoning=500), 540),  # reasoning counted apart
        (usage(700, 540, 1240, reasoning=500), 540),
        (usage(700, 40, 1240), 540),
        (usage(700, 40, 720), None),  # less than its parts
        (usage(700, 40, "740"), None),
        (usage(700, 40, -1), None),
        (usage(700, 40, 740, reasoning=500), None),  # more reasoning than output
        (usage(700, 40, None, reasoning=500), None),
        (usage(100, 40, 1040, cached=900), None),  # cached input counted apart
        (usage(100, 40, 140, cached=900), 40),
        (usage("700", 40, 740), 40),
        (usage(700, 40.0, 740), None),
    ],
)
def test_output_tokens_include_reasoning_and_are_unknown_if_inconsistent(
    raw_usage: dict[str, Any], tokens_out: int | None
) -> None:
    assert read_usage(raw_usage).tokens_out == tokens_out


@given(st.one_of(st.none(), st.integers(), st.dictionaries(st.text(), st.integers()), st.lists(st.integers())))
def test_any_usage_can_be_read(raw_usage: Any) -> None:
    assert isinstance(read_usage(raw_usage), Usage)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (json.dumps({"error": {"message": "temperature: only 1 is supported"}}), "temperature: only 1 is supported"),
        (json.dumps({"error": "no such model"}), "no such model"),
        (json.dumps({"detail": "Not found"}), "Not found"),
        (json.dumps({"message": "two\nlines"}), "two"),
        ("\n\n<html>\n<h1>Bad gateway</h1>", "<html>"),
        ("I would say four.\nOr five.", "I would say four."),
        ("red\x1b[31m \u202eltr", "red [31m  ltr"),
        ("", ""),
        ("x" * 900, "x" * 239 + "…"),
    ],
)
def test_server_message_is_one_line(body: str, message: str) -> None:
    assert server_message(body) == message
