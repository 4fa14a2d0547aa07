"""OpenAI-compatible servers: chat completions as they are asked for, and responses read with suspicion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import orjson

from evaluation.core.metric_specs import Bilingual
from evaluation.judging.calls import LOGPROB_ROUNDING, JudgeCall, JudgeReply, Rung, Token
from evaluation.judging.providers.protocol import Connection, EndpointJudge, Provider, member, messages_of
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
from evaluation.network.transport import HttpResponse

_OK = 200


class OpenAIJudge(EndpointJudge):
    """Calls ``POST {base_url}/chat/completions``; at Azure that of the deployment that bears the model's name."""

    def __init__(self, *, azure_api_version: str = "", **connection: Unpack[Connection]) -> None:
        super().__init__(azure=azure_api_version, **connection)

    def path(self, request: JudgeCall) -> str:
        """Path of chat completions."""
        return "/chat/completions"

    def body(self, request: JudgeCall) -> bytes:
        """Body as it goes over the wire."""
        return orjson.dumps(request_body(request))

    def read(self, response: HttpResponse) -> JudgeReply:
        """Reply for the completion, or for the error that the server told."""
        if response.status == _OK:
            return read_completion(response.body, response.headers.get("content-type", ""))
        return read_error(response.status, response.body)


def request_body(call: JudgeCall) -> dict[str, Any]:
    """The body of ``POST /chat/completions``; the judge's own parameters cannot replace model or messages."""
    schema, messages = dict(call.rendered.schema), messages_of(call)
    body: dict[str, Any] = {**call.parameters, "model": call.model, "messages": messages, "stream": False}
    if call.rung is Rung.JSON_SCHEMA:
        named = {"name": call.rubric.family, "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    if call.rung is Rung.TOOL:
        tool = {"name": call.rubric.family, "strict": True, "parameters": schema}
        body["tools"] = [{"type": "function", "function": tool}]
        body["tool_choice"] = {"type": "function", "function": {"name": call.rubric.family}}
    if call.rung is Rung.JSON_OBJECT:
        body["response_format"] = {"type": "json_object"}
    return body


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
    choices = member(completion, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = member(choice, "message")
    told = (
        "HTTP 200"
        if "json" in content_type.lower()
        else f"HTTP 200 {storable(content_type).partition(';')[0][:80]}".strip()
    )
    usage = read_usage(member(completion, "usage"))
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
    finish_reason = member(choice, "finish_reason")
    outcome, refusal = outcome_of_ending(read_ending(finish_reason)), refusal_text(message)
    logprobs = member(member(choice, "logprobs"), "content")
    if outcome is Outcome.UNKNOWN_ENDING:
        told += f" finish_reason {storable(str(finish_reason))[:60]}"
    return JudgeReply(
        Outcome.REFUSED if refusal and outcome is not Outcome.FILTERED else outcome,
        raw=storable(content or refusal),
        http_status=200,
        detail=told,
        model_returned=_text(member(completion, "model")),
        fingerprint=_text(member(completion, "system_fingerprint")),
        logprobs=bool(logprobs),
        tokens=read_tokens(logprobs),
        **spent,
    )


def _content(message: Any, body: bytes) -> str | None:
    """The message's text, or the arguments where the model called its one tool instead; ``None`` where neither can be
    told. Prose beside a call is none of the verdict; several calls are no verdict, as two objects are none."""
    calls = member(message, "tool_calls")
    if isinstance(calls, list) and calls:
        parts = [member(member(call, "function"), "arguments") for call in calls]
        texts = [content_text(part) if isinstance(part, str | Mapping) else "" for part in parts]
    else:
        parts = [member(message, "content")]
        texts = [content_text(part) for part in parts]
    if any(isinstance(part, Mapping) for part in parts) and repeats_key(body):
        return None
    return None if None in texts else "\n".join(text for text in texts if text is not None)


def _text(value: Any) -> str:
    return storable(value)[:200] if isinstance(value, str) else ""


def read_tokens(told: Any) -> tuple[Token, ...]:
    """The tokens of a completion's ``logprobs.content``; none where they are missing or one of them makes no sense."""
    if not isinstance(told, list):
        return ()
    tokens = [token for one in told if (token := _token(one)) is not None]
    return tuple(tokens) if len(tokens) == len(told) else ()


def _token(told: Any) -> Token | None:
    chances: dict[str, float] = {}
    others = told.get("top_logprobs") if isinstance(told, dict) else None
    for one in (told, *(others if isinstance(others, list) else ())):
        text, logprob = (one.get("token"), one.get("logprob")) if isinstance(one, dict) else (None, None)
        if not isinstance(text, str) or not isinstance(logprob, int | float) or isinstance(logprob, bool):
            return None
        if not logprob <= LOGPROB_ROUNDING:  # which NaN is not either
            return None
        chances[text] = math.exp(min(logprob, 0.0))
    data, written = told.get("bytes"), told["token"]
    # A character may lie in several tokens, whose texts then are no text.
    if isinstance(data, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in data):
        return Token(bytes(data), written, chances)
    return Token(written.encode("utf-8", "replace"), written, chances)


OPENAI = Provider(
    name="openai",
    title=Bilingual("OpenAI-compatible", "OpenAI 호환"),
    open=OpenAIJudge,
    settings=("azure_api_version",),
    logprobs=True,
    batches=True,
    embeddings=True,
)
