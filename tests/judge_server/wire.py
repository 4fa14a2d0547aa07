"""Wire formats of providers other than OpenAI: their requests as chat completions, and replies in their format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.judge_server.actions import Action
from tests.judge_server.answering import answer
from tests.judge_server.received import ReceivedRequest, chat_completion, wire_format

# Ways in which a reply ends -> the provider's words.
ENDINGS: Mapping[str, Mapping[str, str]] = {
    "anthropic": {"stop": "end_turn", "tool": "tool_use", "length": "max_tokens", "refused": "refusal"},
    "bedrock": {"stop": "end_turn", "tool": "tool_use", "length": "max_tokens", "refused": "guardrail_intervened"},
    "gemini": {"stop": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"},
}


def reply_body(request: ReceivedRequest, text: str, ending: str = "stop") -> dict[str, Any]:
    """A reply to the request in its own format: text, or tool input if a tool is required."""
    name = wire_format(request.path)
    chat = chat_completion(request.path, request.body)
    tool = chat["tools"][0]["function"]["name"] if chat.get("tools") and ending == "stop" else ""
    end = ENDINGS[name]["tool" if tool else ending]
    if name == "anthropic":
        part = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": json.loads(text)} if tool else None
        usage = {"input_tokens": 900, "output_tokens": 60, "cache_read_input_tokens": 0}
        usage["cache_creation_input_tokens"] = 0
        content = [part or {"type": "text", "text": text}]
        return {"type": "message", "model": chat["model"], "content": content, "stop_reason": end, "usage": usage}
    if name == "bedrock":
        part = {"toolUse": {"toolUseId": "t1", "name": tool, "input": json.loads(text)}} if tool else {"text": text}
        usage = {"inputTokens": 900, "outputTokens": 60, "totalTokens": 960}
        message = {"role": "assistant", "content": [part]}
        return {"output": {"message": message}, "stopReason": end, "usage": usage, "metrics": {"latencyMs": 1}}
    part = {"functionCall": {"name": tool, "args": json.loads(text)}} if tool else {"text": text}
    usage = {"promptTokenCount": 900, "candidatesTokenCount": 60, "totalTokenCount": 960}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": end}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": chat["model"]}


def native_reply(ending: str = "stop", text: str | None = None) -> Action:
    """A valid reply to any schema in the provider's format, or one with this text and ending."""

    async def act(request: ReceivedRequest, _: web.Request) -> web.StreamResponse:
        content = answer(request) if text is None else text
        if request.response_format == "text" and text is None and request.schema is not None:
            content = f"The answer is looked at first.\nVERDICT: {content}"
        return web.json_response(reply_body(request, content, ending))

    return act


def respond(status: int, body: Any, **headers: str) -> Action:
    """A response with this JSON body; underscores of header names are hyphens."""

    async def act(_: ReceivedRequest, __: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=json.dumps(body), headers=named, content_type="application/json")

    return act
