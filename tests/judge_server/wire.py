"""Actions that answer in the wire format of the request, for providers other than OpenAI."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from evaluation.judging.providers.protocol import LAST_LINE
from tests.judge_server.actions import Action
from tests.judge_server.answering import answer
from tests.judge_server.received import ReceivedRequest, wire_format


def reply_body(request: ReceivedRequest, text: str, ending: str = "stop") -> dict[str, Any]:
    """A reply to the request in its own format: text, or tool input if a tool is required."""
    wire, chat = wire_format(request.path), request.chat
    assert wire is not None
    tool = chat["tools"][0]["function"]["name"] if chat.get("tools") and ending == "stop" else ""
    return wire.build_reply(chat["model"], text, tool, wire.endings["tool" if tool else ending])


def native_reply(ending: str = "stop", text: str | None = None) -> Action:
    """A valid reply to any schema in the provider's format, or one with this text and ending."""

    async def act(request: ReceivedRequest, _: web.Request) -> web.StreamResponse:
        content = answer(request) if text is None else text
        if text is None and LAST_LINE in request.text:
            content = f"The answer is looked at first.\nVERDICT: {content}"
        return web.json_response(reply_body(request, content, ending))

    return act


def respond(status: int, body: Any, **headers: str) -> Action:
    """A response with this JSON body; underscores of header names are hyphens."""

    async def act(_: ReceivedRequest, __: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=json.dumps(body), headers=named, content_type="application/json")

    return act
