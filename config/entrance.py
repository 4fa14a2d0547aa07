"""A WSGI application behind granian's RSGI: a request gets one of the few threads once its body is
there, and none while it comes.

Over WSGI a view that reads a body holds its thread for as long as the client likes; twelve connections that sent ten
bytes and waited stopped a site. Here bodies are awaited, kept in a file from a certain size on, and given up when they
do not come. Every body is read to its end, also where the answer is clear before: a server of HTTP/1.1 that leaves one
unread closes the connection, and the client loses the answer (that the file is too large) or its next request.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]

from evaluation.worker.serving import THREADS

log = logging.getLogger("concord.web")
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Headers = list[tuple[str, str]]
BODY_SECONDS = 20.0  # in which a body has to come, and one second more
BODY_BYTES_A_SECOND = 16 * 1024  # for so much of it that came: 128 kbit/s are slow enough
IN_MEMORY_BYTES = 256 * 1024  # of a body; more is kept in a file
BODIES_AT_A_TIME = 5  # of the largest size, all that are coming taken together
PIECE_BYTES = 64 * 1024  # of an answer that is sent as it is made
PIECE_SECONDS = 30.0  # in which a client has to take one, lest it keep the thread


class Entrance:
    """A WSGI application behind granian's RSGI.

    :param at_most: bytes of a body that are read; who announces or sends more sees the connection end.
    """

    def __init__(self, application: Application, at_most: int, threads: int = THREADS) -> None:
        self.application = application
        self.at_most = at_most
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix="request")
        self.coming = 0  # bytes of bodies that are kept

    async def __rsgi__(self, scope: Any, proto: Any) -> None:
        """Answer a request."""
        headers: Headers = scope.headers.items()
        with SpooledTemporaryFile(IN_MEMORY_BYTES) as body:
            refused = await self._receive(scope, proto, body)
            if refused:
                proto.response_empty(refused, [("connection", "close")])
                return
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self.threads, self._answer, environ(scope, headers, body), proto, loop)

    async def _receive(self, scope: Any, proto: Any, body: IO[bytes]) -> int:
        """Read the body; a status where it is not to be had."""
        if not ("content-length" in scope.headers or "transfer-encoding" in scope.headers or scope.authority):
            return 0
        if int(scope.headers.get("content-length") or 0) > self.at_most:
            return 413
        kept = 0
        try:
            async with asyncio.timeout(BODY_SECONDS) as deadline:
                latest = deadline.when() or 0.0
                async for chunk in proto:
                    kept += len(chunk)
                    self.coming += len(chunk)
                    if kept > self.at_most:
                        return 413
                    if self.coming > BODIES_AT_A_TIME * self.at_most:
                        return 503
                    body.write(chunk)
                    deadline.reschedule(latest + kept / BODY_BYTES_A_SECOND)
        except TimeoutError:
            return 408
        finally:
            self.coming -= kept
        body.seek(0)
        return 0

    def _answer(self, asked: dict[str, Any], proto: Any, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: have the application answer, and pass the answer on as it comes."""
        said: list[Any] = []
        answer = self.application(asked, lambda *status_and_headers: said.extend(status_and_headers))
        try:
            status, headers = int(said[0].split(" ", 1)[0]), said[1]
            pieces = _larger(answer)
            first = next(pieces)
            second = next(pieces, b"")
            if not second:
                proto.response_bytes(status, headers, first)
                return
            stream = proto.response_stream(status, headers)
            for piece in chain((first, second), pieces):
                asyncio.run_coroutine_threadsafe(_send(stream, piece), loop).result(PIECE_SECONDS)
        except (ProtocolClosed, TimeoutError):
            log.info("a client left, or took nothing any more, before the end of the answer")
        finally:
            if close := getattr(answer, "close", None):
                close()


def _larger(answer: Iterable[bytes]) -> Iterator[bytes]:
    """The answer in few pieces; at least one."""
    kept, size = [], 0
    for chunk in answer:
        kept.append(chunk)
        size += len(chunk)
        if size >= PIECE_BYTES:
            yield b"".join(kept)
            kept, size = [], 0
    yield b"".join(kept)


async def _send(stream: Any, piece: bytes) -> None:
    await stream.send_bytes(piece)


def environ(scope: Any, headers: Headers, body: IO[bytes]) -> dict[str, Any]:
    """A request as PEP 3333 has it."""
    server, _, port = scope.server.rpartition(":")
    made: dict[str, Any] = {
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
    if scope.authority:  # HTTP/2 names the host there
        made["HTTP_HOST"] = scope.authority
    for name, value in headers:
        if "_" in name:  # which could pass for a header with a hyphen, such as a proxy's
            continue
        key = name.upper().replace("-", "_")
        key = key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"
        made[key] = f"{made[key]}{'; ' if key == 'HTTP_COOKIE' else ','}{value}" if key in made else value
    return made
