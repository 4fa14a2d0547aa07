"""Anthropic: build requests of the Messages API and validate responses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from evaluation.core.metric_specs import Bilingual
from evaluation.judging.calls import JudgeCall, JudgeReply, ResponseFormat
from evaluation.judging.providers.openai import read_error
from evaluation.judging.providers.protocol import (
    EndpointJudge,
    Provider,
    build_reply,
    cached_usage,
    member,
    members,
    rename_parameters,
    split_messages,
)
from evaluation.network.completions import read_server_error
from evaluation.network.outcomes import Outcome, read_json
from evaluation.network.transport import HttpResponse

_OK = 200
# Later versions refuse temperature for every model.
_API_VERSION = "2023-06-01"
# The API requires a limit. Rewriting a rubric needs 8,000 tokens.
DEFAULT_MAX_TOKENS = 8_192
_PARAMETERS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop_sequences",
    # Names of the API itself.
    "top_k": "top_k",
    "thinking": "thinking",
    "output_config": "output_config",
    "service_tier": "service_tier",
}


class AnthropicJudge(EndpointJudge):
    """Call ``POST {base_url}/messages``."""

    @staticmethod
    def credentials(key: str) -> dict[str, Any]:
        return {"headers": {"anthropic-version": _API_VERSION, **({"x-api-key": key} if key else {})}}

    def path(self, request: JudgeCall) -> str:
        return "/messages"

    def body(self, request: JudgeCall) -> bytes:
        return orjson.dumps(request_body(request))

    def read(self, response: HttpResponse) -> JudgeReply:
        return (
            read_message(response.body)
            if response.status == _OK
            else read_message_error(response.status, response.body)
        )


def request_body(call: JudgeCall) -> dict[str, Any]:
    """Body of ``POST /messages``. Judge parameters cannot override model or messages."""
    system, turns = split_messages(call)
    body = {"max_tokens": DEFAULT_MAX_TOKENS, **rename_parameters(call.parameters, _PARAMETERS)}
    body |= {"model": call.model, "messages": turns, **({"system": system} if system else {})}
    schema, name = dict(call.rendered.schema), call.schema_name
    if call.response_format is ResponseFormat.JSON_SCHEMA:
        body["output_config"] = {**body.get("output_config", {}), "format": {"type": "json_schema", "schema": schema}}
    if call.response_format is ResponseFormat.TOOL:
        body["tools"] = [{"name": name, "input_schema": schema}]
        body["tool_choice"] = {"type": "tool", "name": name, "disable_parallel_tool_use": True}
    return body


def read_message(body: bytes) -> JudgeReply:
    """Convert a 200 response to a reply: text or tool input, stop reason, model and usage."""
    message = read_json(body)
    if read_server_error(message):
        return read_message_error(_OK, body)
    parts, usage = members(message, "content"), member(message, "usage")
    return build_reply(
        body,
        texts=None if parts is None else [part.get("text") for part in parts if part.get("type") == "text"],
        arguments=[part.get("input") for part in parts or () if part.get("type") == "tool_use"],
        finish_reason=member(message, "stop_reason"),
        model=member(message, "model"),
        usage=cached_usage(
            tokens_in=member(usage, "input_tokens"),
            tokens_out=member(usage, "output_tokens"),
            cache_read=member(usage, "cache_read_input_tokens"),
            cache_written=member(usage, "cache_creation_input_tokens"),
            reasoning=member(member(usage, "output_tokens_details"), "thinking_tokens"),
        ),
    )


def read_message_error(status: int, body: bytes) -> JudgeReply:
    """Convert an error. An empty account is a plain 400 or 429, told only by message or detail."""
    reply, error = read_error(status, body), member(read_json(body), "error")
    code, message = str(member(member(error, "details"), "error_code")), str(member(error, "message"))
    if code.endswith("spend_limit_reached") or "credit balance is too low" in message:
        return replace(reply, outcome=Outcome.NO_CREDIT)
    return reply


ANTHROPIC = Provider(
    name="anthropic",
    title=Bilingual("Anthropic", "Anthropic"),
    open=AnthropicJudge,
    address="https://api.anthropic.com/v1",
    parameters=tuple(_PARAMETERS),
    response_formats=(ResponseFormat.JSON_SCHEMA, ResponseFormat.TOOL, ResponseFormat.TEXT),
    batches=True,
)
