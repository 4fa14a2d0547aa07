"""Connections of the guarded transport, on aiohttp: permitted addresses only, limited bodies, no proxy environment."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from evaluation.network.origins import AllowList, Origin
from evaluation.network.outcomes import Outcome
from evaluation.network.transport import Deadlines, Exchange, TransportFault

_KEEPALIVE_SECONDS = 30.0


class AddressRefused(OSError):
    """The name resolves only to addresses that are not permitted."""


class CheckedResolver(AbstractResolver):
    """Resolver that returns permitted addresses only.

    aiohttp connects to exactly these addresses, so DNS rebinding between check and use has no effect."""

    def __init__(self, allowed: AllowList) -> None:
        self._allowed = allowed
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the permitted addresses.

        :raises AddressRefused: if there is none."""
        resolved = await self._resolver.resolve(host, port, family)
        permitted = [result for result in resolved if self._allowed.permits(host, result["host"])]
        if not permitted:
            raise AddressRefused(f"{host} resolves to no permitted address")
        return permitted

    async def close(self) -> None:
        await self._resolver.close()


class Connections:
    """Connections to one origin. Create and use them in a running event loop; close them with ``aclose``."""

    def __init__(self, allowed: AllowList, origin: Origin, deadlines: Deadlines, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._timeout = aiohttp.ClientTimeout(sock_connect=deadlines.connect, sock_read=deadlines.read)
        connector = aiohttp.TCPConnector(
            resolver=CheckedResolver(allowed),
            ssl=ssl.create_default_context() if origin.scheme == "https" else True,
            # The caller limits concurrency; waiting here would use up the deadline.
            limit=0,
            keepalive_timeout=_KEEPALIVE_SECONDS,
        )
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, trust_env=False
        )

    async def open(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], *, encoded: bool = False
    ) -> Exchange:
        """Send a request and return the response as soon as its headers arrive, whatever the status.

        ``encoded``: send the URL unchanged, with escapes such as ``%3A`` that are decoded otherwise.

        :raises TransportFault: for a failed connection, a passed deadline or a refused target."""
        with _translate_faults():
            response = await self._session.request(
                method,
                URL(url, encoded=True) if encoded else url,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=self._timeout,
            )
        return Exchange(response.status, response.headers, self._chunks(response), partial(_release, response))

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise TransportFault(Outcome.WRONG_CONTENT, "compressed although identity was asked for")
        total = 0
        if (response.content_length or 0) <= self._max_bytes:
            with _translate_faults():
                while chunk := await response.content.readany():
                    total += len(chunk)
                    if total > self._max_bytes:
                        break
                    yield chunk
                else:
                    return
        raise TransportFault(Outcome.TOO_LARGE, f"more than {self._max_bytes} bytes")

    async def aclose(self) -> None:
        await self._session.close()


async def _release(response: aiohttp.ClientResponse) -> None:
    response.release()


@contextmanager
def _translate_faults() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise TransportFault(Outcome.TIMEOUT, "no answer in time") from error
    except (aiohttp.ClientError, OSError) as error:
        raise TransportFault(_fault_outcome(error), type(error).__name__) from error


def _fault_outcome(error: BaseException) -> Outcome:
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return Outcome.TLS
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, AddressRefused):
        return Outcome.BLOCKED
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Outcome.NAME_UNKNOWN
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno == errno.ECONNREFUSED:
        return Outcome.UNREACHED
    return Outcome.BLOCKED if isinstance(error, aiohttp.InvalidURL) else Outcome.CONNECTION
