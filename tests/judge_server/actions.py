"""What the server does with a call: an action turns the request into a response, or into a fault."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from tests.judge_server.answering import answer, token_logprobs
from tests.judge_server.received import Received

Action = Callable[[Received, web.Request], Awaitable[web.StreamResponse]]
USAGE: Mapping[str, Any] = {
    "prompt_tokens": 900,
    "completion_tokens": 60,
    "total_tokens": 960,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}


def completion(request: Received, content: str | None, **changes: Any) -> dict[str, Any]:
    """The body of a chat completion; ``changes`` replace ``usage`` (``None`` = missing), ``model``,
    ``finish_reason``, ``refusal``, ``logprobs`` (false = left out), ``chances`` (see :func:`token_logprobs`). A verdict
    stands where the request wants it: in the message, in the
    arguments of the tool, or on the last line."""
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": changes.get("refusal")}
    if changes.get("as_asked") and request.rung == "tool":
        called = {"name": request.body["tools"][0]["function"]["name"], "arguments": content}
        message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": called}]}
    elif changes.get("as_asked") and request.rung == "text" and request.schema is not None:
        message["content"] = f"The answer is looked at first.\nVERDICT: {content}"
    said = content if message["content"] is None else message["content"]
    top = int(request.body.get("top_logprobs", 0))
    logprobs = {"content": token_logprobs(str(said or ""), top, changes.get("chances", {}))}
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


def fitting(**changes: Any) -> Action:
    """A valid answer to whatever schema is asked for."""

    async def act(request: Received, _: web.Request) -> web.StreamResponse:
        return web.json_response(completion(request, answer(request), as_asked=True, **changes))

    return act


def text(content: str | None, **changes: Any) -> Action:
    """A completion with exactly this content."""

    async def act(request: Received, _: web.Request) -> web.StreamResponse:
        return web.json_response(completion(request, content, **changes))

    return act


def body(value: Any) -> Action:
    """Any JSON as the response."""

    async def act(_: Received, __: web.Request) -> web.StreamResponse:
        return web.json_response(value)

    return act


def verdicts(reason: str = "Because.", **scores: Any) -> Action:
    """A completion with one verdict per metric: ``verdicts(correctness=4)``."""
    return text(json.dumps({name: {"reason": reason, "score": score} for name, score in scores.items()}))


def weighing(chances: Mapping[str, Mapping[str, float]], reason: str = "Because.", **changes: Any) -> Action:
    """A completion that says the likeliest level of each metric, and with log probabilities asked for these chances at
    its place; the metrics asked about that are not named are said to be their first level."""

    async def act(request: Received, _: web.Request) -> web.StreamResponse:
        parts = (request.schema or {}).get("properties", {})
        levels = {name: part["properties"]["score"]["enum"][0] for name, part in parts.items()}
        levels |= {name: int(max(of, key=of.__getitem__)) for name, of in chances.items() if name in parts}
        content = json.dumps({n: {"reason": reason, "score": v} for n, v in levels.items()}, ensure_ascii=False)
        return web.json_response(completion(request, content, as_asked=True, chances=chances, **changes))

    return act


def status(code: int, *, error_code: str = "", retry_after: str | None = None, body: str | None = None) -> Action:
    """An error response in the provider's form, or with this body."""

    async def act(_: Received, __: web.Request) -> web.StreamResponse:
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        shown = json.dumps({"error": {"message": "scripted", "code": error_code}}) if body is None else body
        return web.Response(status=code, text=shown, headers=headers, content_type="application/json")

    return act


def html(code: int = 200) -> Action:
    """A page in place of JSON, as proxies send it."""

    async def act(_: Received, __: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text="<html><h1>Bad gateway</h1></html>", content_type="text/html")

    return act


def redirect(location: str, code: int = 307) -> Action:
    """A redirect, which must not be followed."""

    async def act(_: Received, __: web.Request) -> web.StreamResponse:
        return web.Response(status=code, headers={"Location": location})

    return act


def hang(seconds: float = 3600.0) -> Action:
    """No answer for a long time."""

    async def act(request: Received, http: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await fitting()(request, http)

    return act


def drip(every: float = 0.05, pieces: int = 100_000) -> Action:
    """A body that never ends, one byte at a time: no single pause is long."""

    async def act(_: Received, http: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(http)
        for _piece in range(pieces):
            await response.write(b" ")
            await asyncio.sleep(every)
        return response

    return act


def huge(megabytes: int = 50, *, announced: bool = False, code: int = 200) -> Action:
    """A body of this size, with its length announced or not."""

    async def act(_: Received, http: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=code, headers={"Content-Type": "application/json"})
        if announced:
            response.content_length = megabytes * 1_000_000
        await response.prepare(http)
        for _piece in range(megabytes):
            await response.write(b" " * 1_000_000)
        return response

    return act


def disconnect() -> Action:
    """The connection closed without a response."""
    return raw(b"")


def raw(data: bytes) -> Action:
    """These bytes on the wire, then the connection closed."""

    async def act(_: Received, http: web.Request) -> web.StreamResponse:
        if http.transport is not None:
            http.transport.write(data)
            http.transport.close()
        return web.Response()

    return act


def without(*refused: str, then: Action | None = None) -> Action:
    """A server that answers 400 to what it does not know, of ``json_schema``, ``tool``, ``json_object`` and
    ``logprobs``, and does ``then`` with the rest."""

    async def act(request: Received, http: web.Request) -> web.StreamResponse:
        if request.rung in refused or ("logprobs" in refused and request.body.get("logprobs")):
            return await status(400, error_code="unsupported_parameter")(request, http)
        return await (then or fitting())(request, http)

    return act


def ignoring(*ignored: str) -> Action:
    """A server that accepts these rungs and answers with prose all the same."""

    async def act(request: Received, http: web.Request) -> web.StreamResponse:
        prose = text("I would say it is right, two of two.")
        return await (prose if request.rung in ignored else fitting())(request, http)

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
    "no_usage": fitting(usage=None),
    "negative_usage": fitting(usage={"prompt_tokens": -5, "completion_tokens": 10**12}),
    "other_model": fitting(model="another-model"),
}
"""Faults by name, for ``--fault`` of the standalone server and for tests that go through all of them."""
