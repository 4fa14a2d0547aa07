"""The HTTP transport under judges, embeddings and systems under test: one connection target, checked addresses,
deadlines, a cap on the body.

It sends only the headers named here and by the caller, so that neither cookies nor anything from the environment leaves
the machine, and it follows nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from evaluation.network.origins import AllowList, origin_of
from evaluation.network.outcomes import Outcome

if TYPE_CHECKING:
    from evaluation.network.connections import Connections
    from evaluation.network.llm import LLMClient


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds for one call: to connect, between two pieces of the response, and in all."""

    connect: float = 5.0
    read: float = 60.0
    total: float = 120.0


class TransportFault(Exception):
    """A call that ended without a response; ``outcome`` says how."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        self.outcome = outcome
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response, read whole. ``headers`` are looked up without regard to case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """A response whose body is still to come in ``chunks``, which raise :class:`TransportFault` for a body that is
    compressed, above the cap or breaks off. ``headers`` are looked up without regard to case. To be closed by
    ``aclose``; before the body's end that closes the connection."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        chunks: AsyncIterator[bytes],
        aclose: Callable[[], Awaitable[None]],
    ) -> None:
        self.status, self.headers, self.chunks, self.aclose = status, headers, chunks, aclose

    async def whole(self) -> HttpResponse:
        """The response with its whole body.

        :raises TransportFault: as ``chunks``.
        """
        return HttpResponse(self.status, self.headers, b"".join([chunk async for chunk in self.chunks]))


class GuardedTransport:
    """Requests to the origin of ``base_url``. Every fault is raised as :class:`TransportFault`.

    ``key`` is sent as the bearer token, at Azure as ``api-key``; ``headers`` go beside those every request has, or in
    their place. ``azure`` is the version of Azure's API, where the base URL is that of a resource of Azure OpenAI.

    :raises Refused: ``origin_invalid``, ``origin_not_allowed``, ``origin_never_allowed`` when it may not be called.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: str = "",
        allowed_origins: Iterable[str],
        deadlines: Deadlines | None = None,
        most_bytes: int,
        headers: Mapping[str, str] | None = None,
        azure: str = "",
    ) -> None:
        from evaluation.network.connections import Connections  # aiohttp costs 0.2 s at import, before any call is out

        self.azure = azure
        self._allowed = AllowList(allowed_origins)
        self.origin = self._allowed.check(base_url)
        self.deadlines = deadlines or Deadlines()
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # a compressed body could pass the cap and burst afterwards
            "Content-Type": "application/json",
            "User-Agent": "concord",
        }
        if key:
            self._headers |= {"api-key": key} if azure else {"Authorization": f"Bearer {key}"}
        for name, value in (headers or {}).items():
            self._headers = {k: v for k, v in self._headers.items() if k.lower() != name.lower()} | {name: value}
        self._connect = partial(Connections, self._allowed, self.origin, self.deadlines, most_bytes)
        self._connections: Connections | None = None
        self._known: set[str] = set()  # addresses found to be of the origin

    def llm(self, base_url: str) -> LLMClient:
        """The client of endpoints that speak OpenAI's format, above this transport."""
        from evaluation.network.llm import LLMClient

        return LLMClient(base_url, self)

    async def open(self, method: str, url: str, body: bytes = b"", content_type: str = "") -> Exchange:
        """Send a body, JSON unless told otherwise; the response as soon as its head is there, whatever its status.

        :raises TransportFault: for no connection, a deadline, a foreign or refused target.
        """
        if url not in self._known:
            if origin_of(url.partition("?")[0]) != self.origin:
                raise TransportFault(Outcome.BLOCKED, "not the origin that was agreed on")
            self._known.add(url)
        if self._connections is None:
            self._connections = self._connect()
        sent = {**self._headers, "Content-Type": content_type} if content_type else self._headers
        return await self._connections.open(method, url, body, sent)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._connections is not None:
            await self._connections.aclose()
            self._connections = None
