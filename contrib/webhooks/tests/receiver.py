"""A scripted receiver of webhooks on 127.0.0.1."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RESET, STALL = "reset", "stall"
STALL_SECONDS = 3.0


class Receiver(ThreadingHTTPServer):
    """Answers each request by the next of ``script``: a status, :data:`RESET` or :data:`STALL`; 204 after the last.

    ``requests`` holds headers and body of each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: deque[int | str] = deque()
        self.requests: list[tuple[dict[str, str], str]] = []

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
        action = self.server.script.popleft() if self.server.script else 204
        if action == RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        if action == STALL:
            time.sleep(STALL_SECONDS)
            return
        self.send_response(int(action))
        if 300 <= int(action) < 400:
            self.send_header("Location", f"{self.server.origin}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.server.requests.append(({}, "GET"))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver in a thread."""
    receiver = Receiver()
    thread = threading.Thread(target=receiver.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.shutdown()
        receiver.server_close()
