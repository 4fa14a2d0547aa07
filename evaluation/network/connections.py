"""The connections under the guarded transport, on aiohttp: names resolve to permitted addresses only, a body has a cap,
and nothing of the environment is used.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from evaluation.network.origins import AllowList, Origin
from evaluation.network.outcomes import Outcome
from evaluation.network.transport import Deadlines, Exchange, TransportFault

_KEEPALIVE_SECONDS = 30.0


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


class Connections:
    """Open connections to one origin. To be made and used in a running event loop, and closed by ``aclose``."""

    def __init__(self, allowed: AllowList, origin: Origin, deadlines: Deadlines, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._timeout = aiohttp.ClientTimeout(sock_connect=deadlines.connect, sock_read=deadlines.read)
        connector = aiohttp.TCPConnector(
            resolver=CheckedResolver(allowed),
            ssl=ssl.create_default_context() if origin.scheme == "https" else True,
            limit=0,  # the caller bounds concurrency; waiting here would eat the deadline
            keepalive_timeout=_KEEPALIVE_SECONDS,
        )
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, trust_env=False
        )

    async def open(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Exchange:
        """Send a body; the response as soon as its head is there, whatever its status.

        :raises TransportFault: for no connection, a deadline, a refused target.
        """
        with _faults():
            response = await self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False, timeout=self._timeout
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

    async def aclose(self) -> None:
        """Close them."""
        await self._session.close()


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
