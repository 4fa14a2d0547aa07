"""Slow, late and oversized request bodies, and unread responses (real sockets): requests do not block each other, and a
response sent before the body arrived reaches the client on a connection that stays usable."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from config import rsgi_adapter
from config.rsgi_adapter import BufferedRSGIAdapter
from evaluation.worker.serving import web_command
from tests.faults.site import descendants, free_port, kill

TESTS = Path(__file__).parent
rsgi_adapter.BODY_SECONDS = rsgi_adapter.SEND_SECONDS = 2.0
AT_MOST = 30_000_000


def echo_application(environ: dict[str, Any], start_response: Any) -> Any:
    """WSGI application that decides by the headers alone, except at two addresses."""
    start_response("403 Forbidden", [])
    if environ["PATH_INFO"] == "/many":
        return (b"x" * 100_000 for _ in range(1000))
    if environ["PATH_INFO"] == "/자세히".encode().decode("latin-1"):
        keys = ["QUERY_STRING", "HTTP_COOKIE", "HTTP_X_A", "HTTP_X_FORWARDED_FOR", "REMOTE_ADDR", "CONTENT_TYPE"]
        return [repr([environ.get(key) for key in keys]).encode(), b"|", environ["wsgi.input"].read()]
    return [b"no"]


patient = BufferedRSGIAdapter(echo_application, AT_MOST)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The web server of the product, with the application above, in one process of two threads."""
    number = free_port()
    server = subprocess.Popen(
        web_command("127.0.0.1", number, 1, "tests.test_read_to_the_end:patient"), cwd=TESTS.parent
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
        for pid in [*descendants(server.pid), server.pid]:
            kill(pid)
        server.wait()


def open_request(port: int, start: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(f"{start} HTTP/1.1\r\nHost: here\r\n".encode())
    return connection


def read_response(connection: socket.socket) -> tuple[int, bytes]:
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, response.read()


@pytest.mark.parametrize("size", [2, 100_000, 20_000_000])
def test_connection_survives_a_refused_body(port: int, size: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for _ in range(3):
            connection.sendall(f"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: {size}\r\n\r\n".encode())
            time.sleep(0.05)  # the headers could have been answered before the body comes
            connection.sendall(b"x" * size)
            assert read_response(connection) == (403, b"no")


@pytest.mark.parametrize("announced", [900_000_000, None])
def test_client_that_sends_too_much_is_disconnected(port: int, announced: int | None) -> None:
    with open_request(port, "POST /") as connection:
        length_header = f"Content-Length: {announced}" if announced else "Transfer-Encoding: chunked"
        connection.sendall(f"{length_header}\r\n\r\n".encode())
        chunks = (b"f4240\r\n" + bytes(1_000_000) + b"\r\n") * 100
        with pytest.raises(ConnectionError):
            connection.sendall(chunks)


def test_missing_bodies_do_not_block_and_time_out(port: int) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(open_request(port, "POST /")) for _ in range(200)]
        for connection in slow:
            connection.sendall(b"Content-Length: 1000000\r\n\r\n0123456789")
        with open_request(port, "GET /") as other_connection:
            other_connection.sendall(b"\r\n")
            assert read_response(other_connection) == (403, b"no")
        for connection in slow:  # which would wait for ever if a thread waited with them
            assert read_response(connection) == (408, b"")


@pytest.mark.slow
def test_slow_body_that_keeps_arriving_is_accepted(port: int) -> None:
    with open_request(port, "POST /") as connection:
        connection.sendall(b"Content-Length: 300000\r\n\r\n")
        for _ in range(6):
            connection.sendall(b"x" * 50_000)
            time.sleep(0.5)
        assert read_response(connection) == (403, b"no")


def test_unread_responses_do_not_block_other_requests(port: int) -> None:
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(open_request(port, "GET /many")).sendall(b"\r\n")
        other_connection = stack.enter_context(open_request(port, "GET /"))
        other_connection.sendall(b"\r\n")
        assert read_response(other_connection) == (403, b"no")
    with open_request(port, "GET /many") as reading:
        reading.sendall(b"\r\n")
        assert read_response(reading) == (403, b"x" * 100_000_000)


def test_application_receives_the_complete_request(port: int) -> None:
    with open_request(port, "POST /%EC%9E%90%EC%84%B8%ED%9E%88?a=%20b") as connection:
        connection.sendall(b"Cookie: a=1\r\nCookie: b=2\r\nX-A: 1\r\nX-A: 2\r\nX_Forwarded_For: 6.6.6.6\r\n")
        connection.sendall(
            b"Content-Type: text/x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        )
        expected_environ = ["a=%20b", "a=1; b=2", "1,2", None, "127.0.0.1", "text/x"]
        assert read_response(connection) == (403, f"{expected_environ!r}|abcde".encode())
