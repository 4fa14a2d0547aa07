"""Client for every endpoint in OpenAI's format: judges, embeddings, batches and chat models under test.

The ``openai`` package builds requests and parses errors; the guarded transport decides which data leaves the machine
and is accepted. Importing the package takes almost a second, so only :meth:`GuardedTransport.llm` imports this module.
Reasons: docs/decisions/0014."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, cast
from urllib.parse import quote

import httpx2
from openai import APIStatusError, AsyncAzureOpenAI, AsyncOpenAI, AsyncStream

from evaluation.network.outcomes import Outcome
from evaluation.network.transport import Exchange, GuardedTransport, HttpResponse, TransportFault

# The only response headers that are read.
_READ_HEADERS = ("Content-Type", "Retry-After", "retry-after-ms")
# The package requires a key; the transport adds the real one.
_PLACEHOLDER_KEY = "unused"


class _Body(httpx2.AsyncByteStream):
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._exchange.chunks:
            yield chunk

    async def aclose(self) -> None:
        await self._exchange.aclose()


class _GuardedHttpxTransport(httpx2.AsyncBaseTransport):
    """httpx transport on the guarded transport, which adds the key and all headers.

    Only body and content type are taken from the package: no organisation, project, platform or placeholder key."""

    def __init__(self, transport: GuardedTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        content_type = request.headers.get("Content-Type", "")
        exchange = await self._transport.open(request.method, str(request.url), await request.aread(), content_type)
        header_pairs = ((name, exchange.headers.get(name)) for name in _READ_HEADERS)
        headers = [(name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in header_pairs if value]
        response = httpx2.Response(exchange.status, headers=headers, stream=_Body(exchange))
        # Ignore the server's charset: some Python codecs do not decode to text.
        response.encoding = "utf-8"
        return response


class LLMClient:
    """Requests under a base URL; paths begin with a slash.

    Responses are read completely within the total deadline, whatever their status; without a response
    :class:`TransportFault` is raised. The caller retries and records each attempt. Closing the transport closes the
    client."""

    def __init__(self, base_url: str, transport: GuardedTransport) -> None:
        http = httpx2.AsyncClient(transport=_GuardedHttpxTransport(transport), trust_env=False, follow_redirects=False)
        options: dict[str, Any] = {
            "api_key": _PLACEHOLDER_KEY,
            "organization": "",
            "project": "",
            "timeout": None,
            "max_retries": 0,
            "http_client": http,
        }
        self._azure = bool(transport.azure)
        self._openai = (
            AsyncAzureOpenAI(azure_endpoint=base_url, api_version=transport.azure, **options)
            if transport.azure
            else AsyncOpenAI(base_url=base_url, **options)
        )
        self._deadline = transport.deadlines.total

    async def post(self, path: str, body: bytes, model: str = "") -> HttpResponse:
        """Send a JSON body verbatim; on Azure to the deployment with the model's name."""
        if self._azure and model:
            path = f"/deployments/{quote(model, safe='')}{path}"
        return await self._read_whole(self._openai.post(path, content=body, cast_to=httpx2.Response))

    async def get(self, path: str) -> HttpResponse:
        return await self._read_whole(self._openai.get(path, cast_to=httpx2.Response))

    async def upload(self, name: str, lines: bytes, purpose: str) -> HttpResponse:
        """Upload a JSONL file."""
        form: dict[str, Any] = {"body": {"purpose": purpose}, "files": {"file": (name, lines, "application/jsonl")}}
        form["options"] = {"headers": {"Content-Type": "multipart/form-data"}}
        return await self._read_whole(self._openai.post("/files", **form, cast_to=httpx2.Response))

    async def stream(self, path: str, body: bytes) -> Exchange:
        """Send a JSON body verbatim and return the response as soon as its headers arrive.

        The caller enforces the total deadline."""
        request = self._openai.post(
            path, content=body, cast_to=httpx2.Response, stream=True, stream_cls=AsyncStream[object]
        )
        # ``cast_to`` makes a streamed request return the response too.
        response = await _response_of_any_status(cast(Awaitable[httpx2.Response], request))
        return Exchange(response.status_code, response.headers, response.aiter_bytes(), response.aclose)

    async def _read_whole(self, request: Awaitable[httpx2.Response]) -> HttpResponse:
        try:
            async with asyncio.timeout(self._deadline):
                response = await _response_of_any_status(request)
        except TimeoutError as error:
            raise TransportFault(Outcome.TIMEOUT, f"no complete answer in {self._deadline:g} s") from error
        return HttpResponse(response.status_code, response.headers, response.content)


async def _response_of_any_status(request: Awaitable[httpx2.Response]) -> httpx2.Response:
    try:
        return await request
    except APIStatusError as error:
        return error.response
