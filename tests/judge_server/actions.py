"""Actions of the server: each turns a request into a response or a fault."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from tests.judge_server.answering import answer, token_logprobs
from tests.judge_server.received import ReceivedRequest

Action = Callable[[ReceivedRequest, web.Request], Awaitable[web.StreamResponse]]
USAGE: Mapping[str, Any] = {
    "prompt_tokens": 900,
    "completion_tokens": 60,
    "total_tokens": 960,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}


def completion(request: ReceivedRequest, content: str | None, **changes: Any) -> dict[str, Any]:
    """The body of a chat completion. ``changes`` replace ``usage`` (``None`` = missing), ``model``,
    ``finish_reason``, ``refusal``, ``logprobs`` (false = omitted) and ``chances`` (see :func:`token_logprobs`).
    With ``as_asked``, the verdict is in the place that the request's response format requires."""
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": changes.get("refusal")}
    if changes.get("as_asked") and request.response_format == "tool":
        tool_call = {"name": request.body["tools"][0]["function"]["name"], "arguments": content}
        message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": tool_call}]}
    elif changes.get("as_asked") and request.response_format == "text" and request.schema is not None:
        message["content"] = f"The answer is looked at first.\nVERDICT: {content}"
    message_text = content if message["content"] is None else message["content"]
    top = int(request.body.get("top_logprobs", 0))
    logprobs = {"content": token_logprobs(str(message_text or ""), top, changes.get("chances", {}))}
    body = {
        "id": f"chatcmpl-{request.number}",
        "object": "chat.completion",
        "created": 0,
        "model": changes.get("model", request.body.get("model", "")),
        "system_fingerprint": "fp_local",
        "choices": [
            {
                "index": 0,
                "finish_reason": changes.get("finish_reason", "stop"),
                "message": message,
                "logprobs": logprobs if request.body.get("logprobs") and changes.get("logprobs", True) else None,
            }
        ],
    }
    usage = changes.get("usage", USAGE)
    return body if usage is None else {**body, "usage": dict(usage)}


def valid_reply(**changes: Any) -> Action:
    """A valid reply to any requested schema."""

    async def act(request: ReceivedRequest, _: web.Request) -> web.StreamResponse:
        return web.json_response(completion(request, answer(request), as_asked=True, **changes))

    return act


def text(content: str | None, **changes: Any) -> Action:
    """A completion with exactly this content."""

    async def act(request: ReceivedRequest, _: web.Request) -> web.StreamResponse:
        return web.json_response(completion(request, content, **changes))

    return act


def body(value: Any) -> Action:
    """Any JSON as the response."""

    async def act(_: ReceivedRequest, __: web.Request) -> web.StreamResponse:
        return web.json_response(value)

    return act


def verdicts(reason: str = "Because.", **scores: Any) -> Action:
    """A completion with one verdict per metric: ``verdicts(correctness=4)``."""
    return text(json.dumps({name: {"reason": reason, "score": score} for name, score in scores.items()}))


def weighted_levels(chances: Mapping[str, Mapping[str, float]], reason: str = "Because.", **changes: Any) -> Action:
    """A completion with the likeliest level of each metric and, if log probabilities are requested, these chances.
    Requested metrics without chances get their first level."""

    async def act(request: ReceivedRequest, _: web.Request) -> web.StreamResponse:
        parts = (request.schema or {}).get("properties", {})
        levels = {name: part["properties"]["score"]["enum"][0] for name, part in parts.items()}
        levels |= {
            name: int(max(level_chances, key=level_chances.__getitem__))
            for name, level_chances in chances.items()
            if name in parts
        }
        content = json.dumps({n: {"reason": reason, "score": v} for n, v in levels.items()}, ensure_ascii=False)
        return web.json_response(completion(request, content, as_asked=True, chances=chances, **changes))

    return act


def status(code: int, *, error_code: str = "", retry_after: str | None = None, body: str | None = None) -> Action:
    """An error response in the provider's format, or with the given body."""

    async def act(_: ReceivedRequest, __: web.Request) -> web.StreamResponse:
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        response_text = json.dumps({"error": {"message": "scripted", "code": error_code}}) if body is None else body
        return web.Response(status=code, text=response_text, headers=headers, content_type="application/json")

    return act


def html(code: int = 200) -> Action:
    """An HTML page instead of JSON, as proxies send it."""

    async def act(_: ReceivedRequest, __: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text="<html><h1>Bad gateway</h1></html>", content_type="text/html")

    return act


def redirect(location: str, code: int = 307) -> Action:
    """A redirect, which must not be followed."""

    async def act(_: ReceivedRequest, __: web.Request) -> web.StreamResponse:
        return web.Response(status=code, headers={"Location": location})

    return act


def hang(seconds: float = 3600.0) -> Action:
    """No answer for a long time."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await valid_reply()(request, http)

    return act


def drip(every: float = 0.05, count: int = 100_000) -> Action:
    """An endless body, one byte at a time, with short pauses."""

    async def act(_: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(http)
        for _piece in range(count):
            await response.write(b" ")
            await asyncio.sleep(every)
        return response

    return act


def huge(megabytes: int = 50, *, announced: bool = False, code: int = 200) -> Action:
    """A body of this size, with or without a ``Content-Length``."""

    async def act(_: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=code, headers={"Content-Type": "application/json"})
        if announced:
            response.content_length = megabytes * 1_000_000
        await response.prepare(http)
        for _piece in range(megabytes):
            await response.write(b" " * 1_000_000)
        return response

    return act


def disconnect() -> Action:
    """Close the connection without a response."""
    return raw(b"")


def raw(data: bytes) -> Action:
    """These bytes on the wire, followed by closing the connection."""

    async def act(_: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        if http.transport is not None:
            http.transport.write(data)
            http.transport.close()
        return web.Response()

    return act


def without(*unsupported: str, otherwise: Action | None = None) -> Action:
    """A server that answers 400 to requests with any of ``unsupported`` (``json_schema``, ``tool``, ``json_object``,
    ``logprobs``) and uses ``otherwise`` for the rest."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        if request.response_format in unsupported or ("logprobs" in unsupported and request.body.get("logprobs")):
            return await status(400, error_code="unsupported_parameter")(request, http)
        return await (otherwise or valid_reply())(request, http)

    return act


def ignoring(*response_formats: str) -> Action:
    """A server that accepts these response formats and still answers in prose."""

    async def act(request: ReceivedRequest, http: web.Request) -> web.StreamResponse:
        prose = text("I would say it is right, two of two.")
        return await (prose if request.response_format in response_formats else valid_reply())(request, http)

    return act


FAULTS: dict[str, Action] = {
    "rate_limited": status(429, retry_after="1"),
    "rate_limited_shortly": status(429, retry_after="0.05"),
    "rate_limited_long": status(429, retry_after="300"),
    "rate_limited_bare": status(429),
    "overloaded": status(503),
    "server_error": status(500),
    "unauthorised": status(401),
    "forbidden": status(403),
    "not_found": status(404, error_code="model_not_found"),
    "no_credit": status(429, error_code="insufficient_quota"),
    "bad_request": status(400),
    "hang": hang(),
    "drip": drip(),
    "huge": huge(),
    "html": html(),
    "html_502": html(502),
    "disconnect": disconnect(),
    "prose": text("The answer looks mostly right to me, four of five."),
    "fenced": text('```json\n{"correctness": {"reason": "r", "score": 4}}\n```'),
    "two_objects": text('{"correctness": {"reason": "r", "score": 1}} {"correctness": {"reason": "r", "score": 5}}'),
    "truncated": text('{"correctness": {"reason": "The ans', finish_reason="length"),
    "refused": text(None, refusal="I cannot help with that."),
    "filtered": text(None, finish_reason="content_filter"),
    "no_usage": valid_reply(usage=None),
    "negative_usage": valid_reply(usage={"prompt_tokens": -5, "completion_tokens": 10**12}),
    "other_model": valid_reply(model="another-model"),
}
"""Faults by name, for ``--fault`` of the standalone server and for tests that go through all of them."""
