"""The HTTP transport under the judge client: one connection target, checked addresses, deadlines, a cap on the body.

It sends only the headers named here, so that neither cookies nor anything from the environment leaves the machine, and
it follows nothing. Why no SDK stands above it: docs/decisions/0003.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from evaluation.judging.calls import Outcome
from evaluation.judging.origins import AllowList, Origin, origin_of

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


class GuardedTransport:
    """Requests to one origin. Every fault is raised as :class:`TransportFault`; a response is read whole."""

    def __init__(self, origin: Origin, allowed: AllowList, key: str, deadlines: Deadlines, most_bytes: int) -> None:
        self._origin = origin
        self._allowed = allowed
        self._most_bytes = most_bytes
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # a compressed body could pass the cap and burst afterwards
            "Content-Type": "application/json",
            "User-Agent": "concord",
        }
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._timeout = aiohttp.ClientTimeout(sock_connect=deadlines.connect, sock_read=deadlines.read)
        self._session: aiohttp.ClientSession | None = None
        self._known: set[str] = set()  # addresses found to be of the origin

    async def post(self, url: str, body: bytes) -> HttpResponse:
        """Send a JSON body; see :meth:`request`."""
        return await self.request("POST", url, body)

    async def request(self, method: str, url: str, body: bytes = b"", content_type: str = "") -> HttpResponse:
        """Send a body, JSON unless told otherwise; the response, whatever its status.

        :raises TransportFault: for no connection, a deadline, a body above the cap, a foreign or refused target.
        """
        if url not in self._known:
            if origin_of(url.partition("?")[0]) != self._origin:
                raise TransportFault(Outcome.BLOCKED, "not the judge's origin")
            self._known.add(url)
        try:
            return await self._send(method, url, body, content_type)
        except TimeoutError as error:
            raise TransportFault(Outcome.TIMEOUT, "no answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise TransportFault(_outcome_of(error), type(error).__name__) from error

    async def _send(self, method: str, url: str, body: bytes, content_type: str) -> HttpResponse:
        if self._session is None:
            self._session = self._opened()
        headers = {**self._headers, "Content-Type": content_type} if content_type else self._headers
        async with self._session.request(
            method, url, data=body, headers=headers, allow_redirects=False, timeout=self._timeout
        ) as response:
            return HttpResponse(response.status, response.headers, await self._read(response))

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise TransportFault(Outcome.WRONG_CONTENT, "compressed although identity was asked for")
        body = bytearray()
        if (response.content_length or 0) <= self._most_bytes:
            while chunk := await response.content.readany():
                body += chunk
                if len(body) > self._most_bytes:
                    break
            else:
                return bytes(body)
        raise TransportFault(Outcome.TOO_LARGE, f"more than {self._most_bytes} bytes")

    def _opened(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=CheckedResolver(self._allowed),
            ssl=ssl.create_default_context() if self._origin.scheme == "https" else True,
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


def _outcome_of(error: BaseException) -> Outcome:
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return Outcome.TLS
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, AddressRefused):
        return Outcome.BLOCKED
    return Outcome.BLOCKED if isinstance(error, aiohttp.InvalidURL) else Outcome.CONNECTION
