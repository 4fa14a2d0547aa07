"""The chat completion format: a request's body, and a response's body read with suspicion. Pure, no network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from evaluation.judging.calls import VERDICT, JudgeCall, JudgeReply, Rung
from evaluation.judging.logprobs import read_tokens
from evaluation.network.completions import (
    ServerError,
    content_text,
    outcome_of_ending,
    read_ending,
    read_server_error,
    read_usage,
    refusal_text,
    repeats_key,
)
from evaluation.network.outcomes import Outcome, excerpt, read_json, storable

LAST_LINE = f"End your reply with one line of its own: {VERDICT} followed by the JSON object, all on that line."


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
    error = read_server_error(read_json(body)) or ServerError()
    code = next((code for code in error.codes), "")
    return JudgeReply(
        error.outcome(status),
        raw=excerpt(body),
        http_status=status,
        detail=f"HTTP {status}" + (f" {storable(code)}" if code else ""),
    )


def read_completion(body: bytes, content_type: str) -> JudgeReply:
    """The reply for a response with status 200: the first choice's text, why it ended, model and usage. JSON is read
    whatever its content type says; an error that stands in it acts by its code."""
    completion = read_json(body)
    choices = _member(completion, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = _member(choice, "message")
    told = (
        "HTTP 200"
        if "json" in content_type.lower()
        else f"HTTP 200 {storable(content_type).partition(';')[0][:80]}".strip()
    )
    usage = read_usage(_member(completion, "usage"))
    spent: dict[str, Any] = {
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "tokens_cached": usage.cached,
        "tokens_reasoning": usage.reasoning,
    }
    if error := read_server_error(completion) or read_server_error(choice):
        named = " ".join(["HTTP 200", *map(str, filter(None, [error.status, *error.codes[:1]]))])
        return JudgeReply(error.outcome(), raw=excerpt(body), http_status=200, detail=named, **spent)
    content = _content(message, body)
    if not isinstance(message, Mapping) or content is None:
        without_choices = isinstance(completion, Mapping) and "choices" in completion and not choices
        outcome = Outcome.SERVER_ERROR if without_choices else Outcome.WRONG_CONTENT
        return JudgeReply(outcome, raw=excerpt(body), http_status=200, detail=told)
    finish_reason = _member(choice, "finish_reason")
    outcome, refusal = outcome_of_ending(read_ending(finish_reason)), refusal_text(message)
    logprobs = _member(_member(choice, "logprobs"), "content")
    if outcome is Outcome.UNKNOWN_ENDING:
        told += f" finish_reason {storable(str(finish_reason))[:60]}"
    return JudgeReply(
        Outcome.REFUSED if refusal and outcome is not Outcome.FILTERED else outcome,
        raw=storable(content or refusal),
        http_status=200,
        detail=told,
        model_returned=_text(_member(completion, "model")),
        fingerprint=_text(_member(completion, "system_fingerprint")),
        logprobs=bool(logprobs),
        tokens=read_tokens(logprobs),
        **spent,
    )


def _content(message: Any, body: bytes) -> str | None:
    """The message's text, or the arguments where the model called its one tool instead; ``None`` where neither can be
    told. Prose beside a call is none of the verdict; several calls are no verdict, as two objects are none."""
    calls = _member(message, "tool_calls")
    if isinstance(calls, list) and calls:
        parts = [_member(_member(call, "function"), "arguments") for call in calls]
        texts = [content_text(part) if isinstance(part, str | Mapping) else "" for part in parts]
    else:
        parts = [_member(message, "content")]
        texts = [content_text(part) for part in parts]
    if any(isinstance(part, Mapping) for part in parts) and repeats_key(body):
        return None
    return None if None in texts else "\n".join(text for text in texts if text is not None)


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _text(value: Any) -> str:
    return storable(value)[:200] if isinstance(value, str) else ""
