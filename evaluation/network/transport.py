"""HTTP transport for judges, embeddings and systems under test: one origin, checked addresses, deadlines, limited
bodies.

It sends only the headers named here and by the caller, so no cookies or environment settings leave the machine. It
follows no redirects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from evaluation.network.origins import AllowList, parse_origin
from evaluation.network.outcomes import Outcome

if TYPE_CHECKING:
    from evaluation.network.connections import Connections
    from evaluation.network.llm import LLMClient


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Time-outs of a call in seconds: to connect, between two chunks of the response, and in total."""

    connect: float = 5.0
    read: float = 60.0
    total: float = 120.0


class TransportFault(Exception):
    """A call without a response; ``outcome`` classifies it."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        self.outcome = outcome
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete response. ``headers`` are case-insensitive."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """A response whose body is read from ``chunks``. ``headers`` are case-insensitive.

    ``chunks`` raise :class:`TransportFault` for a body that is compressed, too large or interrupted. Close with
    ``aclose``, which closes the connection if the body is incomplete."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        chunks: AsyncIterator[bytes],
        aclose: Callable[[], Awaitable[None]],
    ) -> None:
        self.status, self.headers, self.chunks, self.aclose = status, headers, chunks, aclose

    async def read_whole(self) -> HttpResponse:
        """Read the whole body.

        :raises TransportFault: as ``chunks``."""
        return HttpResponse(self.status, self.headers, b"".join([chunk async for chunk in self.chunks]))


class GuardedTransport:
    """Requests to the origin of ``base_url``. Every fault is raised as :class:`TransportFault`.

    ``key``: sent as bearer token, on Azure as ``api-key``. ``headers``: added to the default headers or replacing them.
    ``azure``: API version if the base URL is an Azure OpenAI resource.

    :raises DomainError: ``origin_invalid``, ``origin_not_allowed``, ``origin_never_allowed`` if calls to the origin are
    not allowed."""

    def __init__(
        self,
        base_url: str,
        *,
        key: str = "",
        allowed_origins: Iterable[str],
        deadlines: Deadlines | None = None,
        max_bytes: int,
        headers: Mapping[str, str] | None = None,
        azure: str = "",
    ) -> None:
        # Importing aiohttp takes 0.2 s, so it is done before the first call.
        from evaluation.network.connections import Connections

        self.azure = azure
        self._allowed = AllowList(allowed_origins)
        self.origin = self._allowed.check(base_url)
        self.deadlines = deadlines or Deadlines()
        self._headers = {
            "Accept": "application/json",
            # A compressed body could pass the size limit and expand afterwards.
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "concord",
        }
        if key:
            self._headers |= {"api-key": key} if azure else {"Authorization": f"Bearer {key}"}
        for name, value in (headers or {}).items():
            self._headers = {k: v for k, v in self._headers.items() if k.lower() != name.lower()} | {name: value}
        self._connect = partial(Connections, self._allowed, self.origin, self.deadlines, max_bytes)
        self._connections: Connections | None = None
        # URLs already checked to be of the origin.
        self._known_urls: set[str] = set()

    def llm(self, base_url: str) -> LLMClient:
        """Client for endpoints in OpenAI's format, on this transport."""
        from evaluation.network.llm import LLMClient

        return LLMClient(base_url, self)

    async def request(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Send a request with a JSON body and read the response of any status within the total deadline.

        URL and ``headers`` are sent unchanged, because a signature may cover them.

        :raises TransportFault: as :meth:`open`, and for an incomplete response."""
        try:
            async with (
                asyncio.timeout(self.deadlines.total),
                aclosing(await self.open(method, url, body, headers=headers, encoded=True)) as response,
            ):
                return await response.read_whole()
        except TimeoutError as error:
            raise TransportFault(Outcome.TIMEOUT, f"no complete answer in {self.deadlines.total:g} s") from error

    async def open(
        self,
        method: str,
        url: str,
        body: bytes = b"",
        content_type: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        encoded: bool = False,
    ) -> Exchange:
        """Send a request and return the response as soon as its headers arrive, whatever the status.

        The content type is JSON by default. ``headers`` are added for this request. ``encoded``: the URL is escaped
        and sent unchanged.

        :raises TransportFault: for a failed connection, a passed deadline, or a foreign or refused target."""
        if url not in self._known_urls:
            if parse_origin(url.partition("?")[0]) != self.origin:
                raise TransportFault(Outcome.BLOCKED, "not the origin that was agreed on")
            self._known_urls.add(url)
        if self._connections is None:
            self._connections = self._connect()
        request_headers = {**self._headers, "Content-Type": content_type} if content_type else self._headers
        request_headers = {**request_headers, **(headers or {})}
        return await self._connections.open(method, url, body, request_headers, encoded=encoded)

    async def aclose(self) -> None:
        if self._connections is not None:
            await self._connections.aclose()
            self._connections = None
