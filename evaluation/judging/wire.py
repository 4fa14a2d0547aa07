"""The chat completion format: a request's body, and a response's body read with suspicion. Pure, no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from evaluation.judging.calls import VERDICT, JudgeCall, JudgeReply, Rung
from evaluation.judging.logprobs import read_tokens
from evaluation.network.outcomes import (
    MOST_TOKENS,
    Outcome,
    excerpt,
    outcome_of_status,
    read_count,
    read_json,
    storable,
)

LAST_LINE = f"End your reply with one line of its own: {VERDICT} followed by the JSON object, all on that line."
_BY_ERROR_CODE = {
    "insufficient_quota": Outcome.NO_CREDIT,
    "billing_hard_limit_reached": Outcome.NO_CREDIT,
    "model_not_found": Outcome.NOT_FOUND,
    "content_filter": Outcome.FILTERED,
    "content_policy_violation": Outcome.FILTERED,
}


def request_body(call: JudgeCall) -> dict[str, Any]:
    """The body of ``POST /chat/completions``; the judge's own parameters cannot replace model or messages."""
    schema = dict(call.rendered.schema)
    messages = [dict(message) for message in call.rendered.messages]
    body: dict[str, Any] = {**call.parameters, "model": call.model, "messages": messages, "stream": False}
    if call.rung is Rung.JSON_SCHEMA:
        named = {"name": call.rubric.family, "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
        return body
    if call.rung is Rung.TOOL:
        tool = {"name": call.rubric.family, "strict": True, "parameters": schema}
        body["tools"] = [{"type": "function", "function": tool}]
        body["tool_choice"] = {"type": "function", "function": {"name": call.rubric.family}}
        return body
    if call.rung is Rung.JSON_OBJECT:
        body["response_format"] = {"type": "json_object"}
    last_line = f"\n\n{LAST_LINE}" if call.rung is Rung.TEXT else ""
    messages[-1]["content"] += f"{last_line}\n\nJSON schema: {json.dumps(schema, ensure_ascii=False)}"
    return body


def encoded(call: JudgeCall) -> bytes:
    """The body as it goes over the wire."""
    return orjson.dumps(request_body(call))


def read_error(status: int, body: bytes) -> JudgeReply:
    """The reply for a response that is not 200; a provider's error code is more exact than the status."""
    error = _member(read_json(body), "error")
    code = _member(error, "code") or _member(error, "type")
    outcome = _BY_ERROR_CODE.get(code) if isinstance(code, str) else None
    return JudgeReply(
        outcome or outcome_of_status(status),
        raw=excerpt(body),
        http_status=status,
        detail=f"HTTP {status}" + (f" {storable(code)[:80]}" if isinstance(code, str) else ""),
    )


def read_completion(body: bytes, content_type: str) -> JudgeReply:
    """The reply for a response with status 200: the first choice's text, why it ended, model and usage."""
    completion = read_json(body) if "json" in content_type.lower() else None
    choices = _member(completion, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = _member(choice, "message")
    content, refusal = _said(message), _member(message, "refusal")
    if not isinstance(message, dict) or not isinstance(content, str | None):
        return JudgeReply(Outcome.WRONG_CONTENT, raw=excerpt(body), http_status=200, detail=content_type[:80])
    refused = isinstance(refusal, str) and bool(refusal.strip())
    logprobs = _member(_member(choice, "logprobs"), "content")
    return JudgeReply(
        _outcome_of_ending(_member(choice, "finish_reason"), refused=refused),
        raw=storable(content or (refusal if refused else "") or ""),
        http_status=200,
        model_returned=_text(_member(completion, "model")),
        fingerprint=_text(_member(completion, "system_fingerprint")),
        logprobs=bool(logprobs),
        tokens=read_tokens(logprobs),
        **_usage(_member(completion, "usage")),
    )


def _said(message: Any) -> Any:
    """The message's text, or the arguments where the model called its one tool instead. Prose beside a call is none of
    the verdict; several calls are no verdict, as two objects are none."""
    calls = _member(message, "tool_calls")
    if not isinstance(calls, list) or not calls:
        return _member(message, "content")
    said = [_member(_member(call, "function"), "arguments") for call in calls]
    return "\n".join(text if isinstance(text, str) else "" for text in said)


def _outcome_of_ending(finish_reason: Any, *, refused: bool) -> Outcome:
    if finish_reason == "content_filter":
        return Outcome.FILTERED
    if refused:
        return Outcome.REFUSED
    return Outcome.TRUNCATED if finish_reason == "length" else Outcome.OK


def _usage(usage: Any) -> dict[str, Any]:
    tokens_in = read_count(_member(usage, "prompt_tokens"), MOST_TOKENS)
    tokens_out = read_count(_member(usage, "completion_tokens"), MOST_TOKENS)
    cached = _member(_member(usage, "prompt_tokens_details"), "cached_tokens")
    reasoning = _member(_member(usage, "completion_tokens_details"), "reasoning_tokens")
    return {
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "tokens_cached": read_count(cached, tokens_in or 0),
        "tokens_reasoning": read_count(reasoning, tokens_out or 0),
    }


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _text(value: Any) -> str:
    return storable(value)[:200] if isinstance(value, str) else ""
