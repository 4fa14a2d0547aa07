"""OpenAI-compatible servers: build chat completion requests and validate responses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self, Unpack

import orjson

from evaluation.core.metric_specs import Bilingual
from evaluation.judging.calls import LOGPROB_ROUNDING, JudgeCall, JudgeReply, ResponseFormat, Token
from evaluation.judging.providers.protocol import Connection, EndpointJudge, Provider, chat_messages, member
from evaluation.network.completions import (
    ServerError,
    classify_finish_reason,
    content_text,
    finish_outcome,
    has_duplicate_keys,
    read_server_error,
    read_usage,
    refusal_text,
)
from evaluation.network.outcomes import Outcome, excerpt, read_json, replace_unstorable
from evaluation.network.transport import HttpResponse

_OK = 200


class OpenAIJudge(EndpointJudge):
    """Call ``POST {base_url}/chat/completions``; on Azure, the deployment named after the model."""

    def __init__(self, *, azure_api_version: str = "", **connection: Unpack[Connection]) -> None:
        super().__init__(azure=azure_api_version, **connection)

    def path(self, request: JudgeCall) -> str:
        return "/chat/completions"

    def body(self, request: JudgeCall) -> bytes:
        return orjson.dumps(request_body(request))

    async def send(self, request: JudgeCall) -> HttpResponse:
        return await self._llm.post(self.path(request), self.body(request), request.model)

    async def __aenter__(self) -> Self:
        self._llm = self._transport.llm(self._base_url)
        return self

    def read(self, response: HttpResponse) -> JudgeReply:
        if response.status == _OK:
            return read_completion(response.body, response.headers.get("content-type", ""))
        return read_error(response.status, response.body)


def request_body(call: JudgeCall) -> dict[str, Any]:
    """Body of ``POST /chat/completions``. Judge parameters cannot override model or messages."""
    schema, messages = dict(call.rendered.schema), chat_messages(call)
    body: dict[str, Any] = {**call.parameters, "model": call.model, "messages": messages, "stream": False}
    if call.response_format is ResponseFormat.JSON_SCHEMA:
        json_schema = {"name": call.schema_name, "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    if call.response_format is ResponseFormat.TOOL:
        tool = {"name": call.schema_name, "strict": True, "parameters": schema}
        body["tools"] = [{"type": "function", "function": tool}]
        body["tool_choice"] = {"type": "function", "function": {"name": call.schema_name}}
    if call.response_format is ResponseFormat.JSON_OBJECT:
        body["response_format"] = {"type": "json_object"}
    return body


def read_error(status: int, body: bytes) -> JudgeReply:
    """Convert a response with an error to a reply. Specific error codes take precedence over the HTTP status, and with
    status 200 all codes do."""
    error = read_server_error(read_json(body)) or ServerError()
    code = next((code for code in error.codes), "")
    return JudgeReply(
        error.outcome(None if status == _OK else status),
        raw=excerpt(body),
        http_status=status,
        detail=f"HTTP {status}" + (f" {replace_unstorable(code)}" if code else ""),
    )


def read_completion(body: bytes, content_type: str) -> JudgeReply:
    """Convert a 200 response to a reply: text, finish reason, model and usage of the first choice.

    JSON is parsed regardless of the content type. An error object in the body determines the outcome by its code."""
    completion = read_json(body)
    choices = member(completion, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = member(choice, "message")
    detail = (
        "HTTP 200"
        if "json" in content_type.lower()
        else f"HTTP 200 {replace_unstorable(content_type).partition(';')[0][:80]}".strip()
    )
    usage = read_usage(member(completion, "usage"))
    usage_fields: dict[str, Any] = {
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "tokens_cached": usage.cached,
        "tokens_reasoning": usage.reasoning,
    }
    if error := read_server_error(completion) or read_server_error(choice):
        error_detail = " ".join(["HTTP 200", *map(str, filter(None, [error.status, *error.codes[:1]]))])
        return JudgeReply(error.outcome(), raw=excerpt(body), http_status=200, detail=error_detail, **usage_fields)
    content = _content(message, body)
    if not isinstance(message, Mapping) or content is None:
        without_choices = isinstance(completion, Mapping) and "choices" in completion and not choices
        outcome = Outcome.SERVER_ERROR if without_choices else Outcome.WRONG_CONTENT
        return JudgeReply(outcome, raw=excerpt(body), http_status=200, detail=detail)
    finish_reason = member(choice, "finish_reason")
    outcome, refusal = finish_outcome(classify_finish_reason(finish_reason)), refusal_text(message)
    logprobs = member(member(choice, "logprobs"), "content")
    if outcome is Outcome.UNKNOWN_ENDING:
        detail += f" finish_reason {replace_unstorable(str(finish_reason))[:60]}"
    return JudgeReply(
        Outcome.REFUSED if refusal and outcome is not Outcome.FILTERED else outcome,
        raw=replace_unstorable(content or refusal),
        http_status=200,
        detail=detail,
        model_returned=_text(member(completion, "model")),
        fingerprint=_text(member(completion, "system_fingerprint")),
        logprobs=bool(logprobs),
        tokens=read_tokens(logprobs),
        **usage_fields,
    )


def _content(message: Any, body: bytes) -> str | None:
    """Text of the message, or the tool arguments if the model called the tool; ``None`` if neither can be read.

    Prose next to a tool call is ignored. Several tool calls are joined, so that they do not parse as one verdict."""
    calls = member(message, "tool_calls")
    if isinstance(calls, list) and calls:
        parts = [member(member(call, "function"), "arguments") for call in calls]
        texts = [content_text(part) if isinstance(part, str | Mapping) else "" for part in parts]
    else:
        parts = [member(message, "content")]
        texts = [content_text(part) for part in parts]
    if any(isinstance(part, Mapping) for part in parts) and has_duplicate_keys(body):
        return None
    return None if None in texts else "\n".join(text for text in texts if text is not None)


def _text(value: Any) -> str:
    return replace_unstorable(value)[:200] if isinstance(value, str) else ""


def read_tokens(logprobs: Any) -> tuple[Token, ...]:
    """Tokens of ``logprobs.content``; empty if they are missing or any is invalid."""
    if not isinstance(logprobs, list):
        return ()
    tokens = [token for entry in logprobs if (token := _token(entry)) is not None]
    return tuple(tokens) if len(tokens) == len(logprobs) else ()


def _token(entry: Any) -> Token | None:
    probabilities: dict[str, float] = {}
    alternatives = entry.get("top_logprobs") if isinstance(entry, dict) else None
    for candidate in (entry, *(alternatives if isinstance(alternatives, list) else ())):
        text, logprob = (
            (candidate.get("token"), candidate.get("logprob")) if isinstance(candidate, dict) else (None, None)
        )
        if not isinstance(text, str) or not isinstance(logprob, int | float) or isinstance(logprob, bool):
            return None
        # Also rejects NaN.
        if not logprob <= LOGPROB_ROUNDING:
            return None
        probabilities[text] = math.exp(min(logprob, 0.0))
    token_bytes, token_text = entry.get("bytes"), entry["token"]
    # Tokens may split a character; ``token`` is then not valid text, so prefer ``bytes``.
    if isinstance(token_bytes, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in token_bytes):
        return Token(bytes(token_bytes), token_text, probabilities)
    return Token(token_text.encode("utf-8", "replace"), token_text, probabilities)


OPENAI = Provider(
    name="openai",
    title=Bilingual("OpenAI-compatible", "OpenAI 호환"),
    open=OpenAIJudge,
    address="https://api.openai.com/v1",
    settings=("azure_api_version",),
    logprobs=True,
    batches=True,
    embeddings=True,
)
