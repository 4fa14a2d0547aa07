"""Google Gemini: build requests of the native API (``generateContent``) and validate responses.

The native API tells blocked prompts, thinking tokens and waits apart, which Google's OpenAI-compatible address does
not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import orjson

from evaluation.core.metric_specs import Bilingual
from evaluation.judging.calls import JudgeCall, JudgeReply, ResponseFormat
from evaluation.judging.providers.openai import read_error
from evaluation.judging.providers.protocol import (
    EndpointJudge,
    Provider,
    build_reply,
    member,
    members,
    rename_parameters,
    split_messages,
)
from evaluation.network.completions import Usage, read_server_error, read_usage
from evaluation.network.outcomes import MAX_TOKENS, Outcome, read_count, read_json
from evaluation.network.retrying import retry_after_seconds
from evaluation.network.transport import HttpResponse

_OK = 200
_GENERATION_PARAMETERS = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "seed": "seed",
    "stop": "stopSequences",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    # Names of the API itself.
    "topK": "topK",
    "thinkingConfig": "thinkingConfig",
}
# Members of a response; one without candidates and reason is a fault of the server.
_MEMBERS = frozenset({"candidates", "promptFeedback", "usageMetadata"})
_REQUEST_PARAMETERS = {"safetySettings": "safetySettings"}


class GeminiJudge(EndpointJudge):
    """Call ``POST {base_url}/models/{model}:generateContent``."""

    @staticmethod
    def credentials(key: str) -> dict[str, Any]:
        return {"headers": {"x-goog-api-key": key} if key else {}}

    def path(self, request: JudgeCall) -> str:
        return f"/models/{quote(request.model.removeprefix('models/'), safe='')}:generateContent"

    def body(self, request: JudgeCall) -> bytes:
        return orjson.dumps(request_body(request))

    def read(self, response: HttpResponse) -> JudgeReply:
        return read_content(response.body) if response.status == _OK else _read_error(response.status, response.body)


def request_body(call: JudgeCall) -> dict[str, Any]:
    """Body of ``generateContent``."""
    system, turns = split_messages(call)
    roles = {"assistant": "model"}
    generation = rename_parameters(call.parameters, _GENERATION_PARAMETERS)
    body: dict[str, Any] = rename_parameters(call.parameters, _REQUEST_PARAMETERS)
    body["contents"] = [
        {"role": roles.get(turn["role"], turn["role"]), "parts": [{"text": turn["content"]}]} for turn in turns
    ]
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    schema, name = dict(call.rendered.schema), call.schema_name
    if call.response_format in {ResponseFormat.JSON_SCHEMA, ResponseFormat.JSON_OBJECT}:
        generation["responseMimeType"] = "application/json"
    if call.response_format is ResponseFormat.JSON_SCHEMA:
        generation["responseJsonSchema"] = schema
    if call.response_format is ResponseFormat.TOOL:
        body["tools"] = [{"functionDeclarations": [{"name": name, "parametersJsonSchema": schema}]}]
        body["toolConfig"] = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}
    return {**body, "generationConfig": generation} if generation else body


def read_content(body: bytes) -> JudgeReply:
    """Convert a 200 response to a reply: text or function arguments of the first candidate. A blocked prompt has no
    candidate."""
    value = read_json(body)
    if read_server_error(value):
        return _read_error(_OK, body)
    candidate = next(iter(members(value, "candidates") or []), None)
    # A candidate that is stopped at once has no parts.
    parts = members(member(candidate, "content"), "parts") or []
    spoken = [part for part in parts if part.get("thought") is not True]
    texts, finish_reason = [part["text"] for part in spoken if "text" in part], member(candidate, "finishReason")
    if candidate is None:
        blocked = member(member(value, "promptFeedback"), "blockReason")
        texts, finish_reason = ([str(blocked)], "blocked") if blocked else ([], "error")
    return build_reply(
        body,
        texts=texts if isinstance(value, Mapping) and not _MEMBERS.isdisjoint(value) else None,
        arguments=[member(part["functionCall"], "args") for part in spoken if "functionCall" in part],
        finish_reason=finish_reason,
        model=member(value, "modelVersion"),
        usage=_read_usage(member(value, "usageMetadata")),
    )


def _read_usage(usage: Any) -> Usage:
    """Billed tokens: thinking counts as output. JSON of the API leaves out zeros."""
    if read_count(member(usage, "promptTokenCount"), MAX_TOKENS) is None:
        return Usage()

    def count(name: str) -> int:
        return read_count(member(usage, name), MAX_TOKENS) or 0

    return read_usage(
        {
            "prompt_tokens": count("promptTokenCount") + count("toolUsePromptTokenCount"),
            "completion_tokens": count("candidatesTokenCount") + count("thoughtsTokenCount"),
            "total_tokens": member(usage, "totalTokenCount"),
            "cached_tokens": count("cachedContentTokenCount"),
            "reasoning_tokens": count("thoughtsTokenCount"),
        }
    )


def _read_error(status: int, body: bytes) -> JudgeReply:
    """Convert an error. Its details name an invalid key, whose status is 400, and the wait after a 429."""
    reply = read_error(status, body)
    details = members(member(read_json(body), "error"), "details") or []
    delay = next((str(part["retryDelay"]) for part in details if "retryDelay" in part), "")
    reply = replace(reply, retry_after=retry_after_seconds({"retry-after": delay}, datetime.now(UTC)))
    if any(member(part, "reason") == "API_KEY_INVALID" for part in details):
        return replace(reply, outcome=Outcome.UNAUTHORISED)
    return reply


GEMINI = Provider(
    name="gemini",
    title=Bilingual("Google Gemini", "Google Gemini"),
    open=GeminiJudge,
    address="https://generativelanguage.googleapis.com/v1beta",
    parameters=(*_GENERATION_PARAMETERS, *_REQUEST_PARAMETERS),
)
