"""The HTTP transport under judges, embeddings and systems under test: one connection target, checked addresses,
deadlines, a cap on the body.

It sends only the headers named here and by the caller, so that neither cookies nor anything from the environment leaves
the machine, and it follows nothing.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from evaluation.network.origins import AllowList, origin_of
from evaluation.network.outcomes import Outcome

if TYPE_CHECKING:
    from evaluation.network.llm import LLMClient

_KEEPALIVE_SECONDS = 30.0


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


class AddressRefused(OSError):
    """The name resolves to addresses that may not be called."""


class CheckedResolver(AbstractResolver):
    """Resolves names to permitted addresses only; what it returns is what is connected to, so a name that changes
    its address between check and use gains nothing."""

    def __init__(self, allowed: AllowList) -> None:
        self._allowed = allowed
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The permitted addresses.

        :raises AddressRefused: when there is none among those found.
        """
        found = await self._resolver.resolve(host, port, family)
        permitted = [result for result in found if self._allowed.permits(host, result["host"])]
        if not permitted:
            raise AddressRefused(f"{host} resolves to no permitted address")
        return permitted

    async def close(self) -> None:
        await self._resolver.close()


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
        self.azure = azure
        self._allowed = AllowList(allowed_origins)
        self.origin = self._allowed.check(base_url)
        self.deadlines = deadlines or Deadlines()
        self._most_bytes = most_bytes
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
        self._timeout = aiohttp.ClientTimeout(sock_connect=self.deadlines.connect, sock_read=self.deadlines.read)
        self._session: aiohttp.ClientSession | None = None
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
        if self._session is None:
            self._session = self._opened()
        sent = {**self._headers, "Content-Type": content_type} if content_type else self._headers
        with _faults():
            response = await self._session.request(
                method, url, data=body, headers=sent, allow_redirects=False, timeout=self._timeout
            )
        return Exchange(response.status, response.headers, self._chunks(response), partial(_released, response))

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise TransportFault(Outcome.WRONG_CONTENT, "compressed although identity was asked for")
        read = 0
        if (response.content_length or 0) <= self._most_bytes:
            with _faults():
                while chunk := await response.content.readany():
                    read += len(chunk)
                    if read > self._most_bytes:
                        break
                    yield chunk
                else:
                    return
        raise TransportFault(Outcome.TOO_LARGE, f"more than {self._most_bytes} bytes")

    def _opened(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=CheckedResolver(self._allowed),
            ssl=ssl.create_default_context() if self.origin.scheme == "https" else True,
            limit=0,  # the caller bounds concurrency; waiting here would eat the deadline
            keepalive_timeout=_KEEPALIVE_SECONDS,
        )
        return aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, trust_env=False
        )

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _released(response: aiohttp.ClientResponse) -> None:
    response.release()


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise TransportFault(Outcome.TIMEOUT, "no answer in time") from error
    except (aiohttp.ClientError, OSError) as error:
        raise TransportFault(_outcome_of(error), type(error).__name__) from error


def _outcome_of(error: BaseException) -> Outcome:
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return Outcome.TLS
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, AddressRefused):
        return Outcome.BLOCKED
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Outcome.NAME_UNKNOWN
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno == errno.ECONNREFUSED:
        return Outcome.UNREACHED
    return Outcome.BLOCKED if isinstance(error, aiohttp.InvalidURL) else Outcome.CONNECTION
