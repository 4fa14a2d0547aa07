"""An answer given before the request's body arrived reaches the client, and the connection goes on (real sockets)."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from config.wsgi import read_to_the_end
from tests.faults.site import free_port

HERE = Path(__file__).parent


def refuse(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """An application that decides by the headers alone."""
    start_response("403 Forbidden", [("Content-Length", "2")])
    return [b"no"]


patient = read_to_the_end(refuse, at_most=30_000_000)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The web server of the product, with the application above."""
    number = free_port()
    address = ["--interface", "wsgi", "--host", "127.0.0.1", "--port", str(number), "--blocking-threads", "2"]
    size = ["--workers-kill-timeout", "2", "--log-level", "error"]
    server = subprocess.Popen(
        [sys.executable, "-m", "granian", *address, *size, "tests.test_read_to_the_end:patient"],
        cwd=HERE.parent,
    )
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", number)).close()
                break
            except OSError:
                time.sleep(0.1)
        yield number
    finally:
        server.terminate()
        server.wait()


@pytest.mark.parametrize("size", [2, 100_000, 20_000_000])
def test_the_connection_goes_on_after_a_body_nobody_wanted(port: int, size: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for _ in range(3):
            connection.sendall(f"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: {size}\r\n\r\n".encode())
            time.sleep(0.05)  # the headers have been answered before the body comes
            connection.sendall(b"x" * size)
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert (response.status, response.read()) == (403, b"no")


def test_who_sends_more_than_is_read_is_cut_off(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 900000000\r\n\r\n")
        with pytest.raises(ConnectionError):
            connection.sendall(bytes(100_000_000))


@pytest.mark.parametrize(
    ("environ", "left"),
    [
        ({"CONTENT_LENGTH": "4", "wsgi.input_terminated": True}, b""),
        ({"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}, b""),
        ({"CONTENT_LENGTH": "4"}, b"body"),  # such an input has no end of its own
        ({"CONTENT_LENGTH": "", "wsgi.input_terminated": True}, b"body"),
    ],
)
def test_only_bodies_with_an_end_are_read(environ: dict[str, Any], left: bytes) -> None:
    body = BytesIO(b"body")
    assert patient({**environ, "wsgi.input": body}, lambda *_: None) == [b"no"]
    assert body.read() == left
