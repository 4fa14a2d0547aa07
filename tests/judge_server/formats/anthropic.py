"""Anthropic's Messages API."""

from __future__ import annotations

import json
from typing import Any

from tests.judge_server.formats.protocol import ChatRequest, ErrorResponse, WireFormat

ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}


def read_request(path: str, body: dict[str, Any]) -> ChatRequest:
    return ChatRequest(
        model=body["model"],
        texts=[body.get("system", ""), *(turn["content"] for turn in body["messages"])],
        schema=body.get("output_config", {}).get("format", {}).get("schema"),
        tools={tool["name"]: tool["input_schema"] for tool in body.get("tools", [])},
    )


def build_reply(model: str, text: str, tool: str, ending: str) -> dict[str, Any]:
    part = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": json.loads(text)} if tool else None
    usage = {"input_tokens": 900, "output_tokens": 60, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    content = [part or {"type": "text", "text": text}]
    return {"type": "message", "model": model, "content": content, "stop_reason": ending, "usage": usage}


def error(status: int, message: str = "scripted", **headers: str) -> ErrorResponse:
    fault = {"type": ERROR_TYPES[status], "message": message}
    return ErrorResponse(status, {"type": "error", "error": fault, "request_id": "req_1"}, headers)


FORMAT = WireFormat(
    suffix="/messages",
    endings={"stop": "end_turn", "tool": "tool_use", "length": "max_tokens", "refused": "refusal"},
    read_request=read_request,
    build_reply=build_reply,
    error=error,
    faults={
        # In a response with status 200, as gateways send it.
        "throttling": error(429)._replace(status=200),
        "expired credentials": error(401, "API key has expired."),
    },
)
