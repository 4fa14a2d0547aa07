"""One client for every endpoint that speaks OpenAI's format: judges, embeddings, batches, chat models under test.

It is the ``openai`` package's client above the guarded transport: the package knows requests and their errors, the
transport what leaves the machine and what comes in. Importing the package takes most of a second, so this module is
imported by :meth:`GuardedTransport.llm` alone, when somebody is about to call. Why: docs/decisions/0014.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, cast
from urllib.parse import quote

import httpx2
from openai import APIStatusError, AsyncAzureOpenAI, AsyncOpenAI, AsyncStream

from evaluation.network.outcomes import Outcome
from evaluation.network.transport import Exchange, GuardedTransport, HttpResponse, TransportFault

_HEARD = ("Content-Type", "Retry-After", "retry-after-ms")  # all that is read of a response's headers
_KEY = "unused"  # the package wants one; ours never enters it


class _Body(httpx2.AsyncByteStream):
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._exchange.chunks:
            yield chunk

    async def aclose(self) -> None:
        await self._exchange.aclose()


class _Guarded(httpx2.AsyncBaseTransport):
    """Sends by the guarded transport, which has the key and the headers that leave the machine. Of what the package
    would send only the body and its type are taken: no organisation, project, platform or placeholder of a key."""

    def __init__(self, transport: GuardedTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        kind = request.headers.get("Content-Type", "")
        exchange = await self._transport.open(request.method, str(request.url), await request.aread(), kind)
        told = ((name, exchange.headers.get(name)) for name in _HEARD)
        headers = [(name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in told if value]
        response = httpx2.Response(exchange.status, headers=headers, stream=_Body(exchange))
        response.encoding = "utf-8"  # the server has no say: some codecs of Python do not decode to text
        return response


class LLMClient:
    """Requests under a base URL; paths begin with a slash. What comes back is read whole within the total deadline,
    whatever its status; where nothing does, :class:`TransportFault` is raised. Retries are the caller's, each a row.
    Closing the transport is all there is to close."""

    def __init__(self, base_url: str, transport: GuardedTransport) -> None:
        http = httpx2.AsyncClient(transport=_Guarded(transport), trust_env=False, follow_redirects=False)
        ours: dict[str, Any] = {
            "api_key": _KEY,
            "organization": "",
            "project": "",
            "timeout": None,
            "max_retries": 0,
            "http_client": http,
        }
        self._azure = bool(transport.azure)
        self._openai = (
            AsyncAzureOpenAI(azure_endpoint=base_url, api_version=transport.azure, **ours)
            if transport.azure
            else AsyncOpenAI(base_url=base_url, **ours)
        )
        self._total = transport.deadlines.total

    async def post(self, path: str, body: bytes, model: str = "") -> HttpResponse:
        """Send a JSON body as it is; at Azure to the deployment that bears the model's name."""
        if self._azure and model:
            path = f"/deployments/{quote(model, safe='')}{path}"
        return await self._whole(self._openai.post(path, content=body, cast_to=httpx2.Response))

    async def get(self, path: str) -> HttpResponse:
        """Ask without a body."""
        return await self._whole(self._openai.get(path, cast_to=httpx2.Response))

    async def upload(self, name: str, lines: bytes, purpose: str) -> HttpResponse:
        """Hand over a JSONL file."""
        form: dict[str, Any] = {"body": {"purpose": purpose}, "files": {"file": (name, lines, "application/jsonl")}}
        form["options"] = {"headers": {"Content-Type": "multipart/form-data"}}
        return await self._whole(self._openai.post("/files", **form, cast_to=httpx2.Response))

    async def stream(self, path: str, body: bytes) -> Exchange:
        """Send a JSON body as it is; the response as soon as its head is there. The total deadline is the caller's."""
        asked = self._openai.post(
            path, content=body, cast_to=httpx2.Response, stream=True, stream_cls=AsyncStream[object]
        )
        response = await _whatever(cast(Awaitable[httpx2.Response], asked))  # by ``cast_to``, of a stream too
        return Exchange(response.status_code, response.headers, response.aiter_bytes(), response.aclose)

    async def _whole(self, asked: Awaitable[httpx2.Response]) -> HttpResponse:
        try:
            async with asyncio.timeout(self._total):
                response = await _whatever(asked)
        except TimeoutError as error:
            raise TransportFault(Outcome.TIMEOUT, f"no complete answer in {self._total:g} s") from error
        return HttpResponse(response.status_code, response.headers, response.content)


async def _whatever(asked: Awaitable[httpx2.Response]) -> httpx2.Response:
    """The response, whatever its status."""
    try:
        return await asked
    except APIStatusError as error:
        return error.response
