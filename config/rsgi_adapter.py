"""Runs a WSGI application behind granian's RSGI; a request takes a thread only once its body is complete.

Under WSGI a view that reads a body holds its thread as long as the client likes: twelve connections that sent ten bytes
and paused stopped a site. This adapter awaits bodies, spools large ones to a file, and gives up on slow ones. It reads
every body to its end, even if the response is already clear. An HTTP/1.1 server that leaves a body unread closes the
connection, and the client loses the response (that the file is too large) or its next request."""

import asyncio
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from tempfile import SpooledTemporaryFile
from threading import Thread
from typing import IO, Any

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]

from config.connection_limit import enforce_connection_limit
from evaluation.core.addresses import IPNetwork
from evaluation.worker.serving import THREADS

log = logging.getLogger("concord.web")
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Headers = list[tuple[str, str]]
# Time-out of a body, plus one second for each `MIN_BODY_BYTES_PER_SECOND` received.
BODY_SECONDS = 20.0
# Slowest accepted upload: 128 kbit/s.
MIN_BODY_BYTES_PER_SECOND = 16 * 1024
# Part of a body that is kept in memory; larger bodies are spooled to a file.
MAX_MEMORY_BYTES = 256 * 1024
# Bound of all buffered bodies together, in bodies of the maximum size.
MAX_BUFFERED_BODIES = 5
# Chunk size of a streamed response.
MIN_CHUNK_BYTES = 64 * 1024
# Send time-out per chunk; frees the thread of a stalled client.
SEND_SECONDS = 30.0


class BufferedRSGIAdapter:
    """RSGI adapter that buffers request bodies before it calls a WSGI application.

    :param max_body_bytes: maximum size of a body; larger ones are answered with 413 and the connection is closed.
    :param trusted_proxies: networks that may have any number of connections."""

    def __init__(
        self,
        application: Application,
        max_body_bytes: int,
        threads: int = THREADS,
        trusted_proxies: Collection[IPNetwork] = (),
    ) -> None:
        self.application = application
        self.max_body_bytes = max_body_bytes
        self.trusted_proxies = trusted_proxies
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix="request")
        # Bytes of all bodies that are being received.
        self.buffered_bytes = 0

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the limit of connections per address, once in each process."""
        Thread(target=enforce_connection_limit, args=[self.trusted_proxies], name="connections", daemon=True).start()

    async def __rsgi__(self, scope: Any, proto: Any) -> None:
        """Handle one request."""
        headers: Headers = scope.headers.items()
        with SpooledTemporaryFile(MAX_MEMORY_BYTES) as body:
            error_status = await self._receive_body(scope, proto, body)
            if error_status:
                proto.response_empty(error_status, [("connection", "close")])
                return
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self.threads, self._respond, environ(scope, headers, body), proto, loop)

    async def _receive_body(self, scope: Any, proto: Any, body: IO[bytes]) -> int:
        """Read the body; return 0, or the HTTP status of the error."""
        if not ("content-length" in scope.headers or "transfer-encoding" in scope.headers or scope.authority):
            return 0
        if int(scope.headers.get("content-length") or 0) > self.max_body_bytes:
            return 413
        received_bytes = 0
        try:
            async with asyncio.timeout(BODY_SECONDS) as deadline:
                body_deadline = deadline.when() or 0.0
                async for chunk in proto:
                    received_bytes += len(chunk)
                    self.buffered_bytes += len(chunk)
                    if received_bytes > self.max_body_bytes:
                        return 413
                    if self.buffered_bytes > MAX_BUFFERED_BODIES * self.max_body_bytes:
                        return 503
                    body.write(chunk)
                    deadline.reschedule(body_deadline + received_bytes / MIN_BODY_BYTES_PER_SECOND)
        except TimeoutError:
            return 408
        finally:
            self.buffered_bytes -= received_bytes
        body.seek(0)
        return 0

    def _respond(self, wsgi_environ: dict[str, Any], proto: Any, loop: asyncio.AbstractEventLoop) -> None:
        """Call the application in a worker thread and send its response in chunks."""
        response_start: list[Any] = []
        response = self.application(wsgi_environ, lambda *status_and_headers: response_start.extend(status_and_headers))
        try:
            status, headers = int(response_start[0].split(" ", 1)[0]), response_start[1]
            chunks = _merge_chunks(response)
            first = next(chunks)
            second = next(chunks, b"")
            if not second:
                proto.response_bytes(status, headers, first)
                return
            stream = proto.response_stream(status, headers)
            for chunk in chain((first, second), chunks):
                asyncio.run_coroutine_threadsafe(_send(stream, chunk), loop).result(SEND_SECONDS)
        except (ProtocolClosed, TimeoutError):
            log.info("a client disconnected or stopped reading before the end of the response")
        finally:
            if close := getattr(response, "close", None):
                close()


def _merge_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Merge small chunks; yields at least one."""
    buffer, size = [], 0
    for chunk in chunks:
        buffer.append(chunk)
        size += len(chunk)
        if size >= MIN_CHUNK_BYTES:
            yield b"".join(buffer)
            buffer, size = [], 0
    yield b"".join(buffer)


async def _send(stream: Any, chunk: bytes) -> None:
    await stream.send_bytes(chunk)


def environ(scope: Any, headers: Headers, body: IO[bytes]) -> dict[str, Any]:
    """Build the WSGI environment (PEP 3333) of a request."""
    server, _, port = scope.server.rpartition(":")
    result: dict[str, Any] = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string,
        "SERVER_NAME": server,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "REMOTE_ADDR": scope.client.rpartition(":")[0].strip("[]"),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": body,
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    # HTTP/2 names the host in `:authority`.
    if scope.authority:
        result["HTTP_HOST"] = scope.authority
    for name, value in headers:
        # An underscore would let a header pass for one with a hyphen, such as a proxy's.
        if "_" in name:
            continue
        key = name.upper().replace("-", "_")
        key = key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"
        result[key] = f"{result[key]}{'; ' if key == 'HTTP_COOKIE' else ','}{value}" if key in result else value
    return result
