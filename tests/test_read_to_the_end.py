"""Bodies that come slowly, late or too large, and answers that are not taken (real sockets): one request does not hold
up another, and an answer given before the body arrived reaches the client, and the connection goes on."""

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

HERE = Path(__file__).parent
rsgi_adapter.BODY_SECONDS = rsgi_adapter.SEND_SECONDS = 2.0
AT_MOST = 30_000_000


def told(asked: dict[str, Any], start_response: Any) -> Any:
    """An application that decides by the headers alone, but for two addresses."""
    start_response("403 Forbidden", [])
    if asked["PATH_INFO"] == "/many":
        return (b"x" * 100_000 for _ in range(1000))
    if asked["PATH_INFO"] == "/자세히".encode().decode("latin-1"):
        keys = ["QUERY_STRING", "HTTP_COOKIE", "HTTP_X_A", "HTTP_X_FORWARDED_FOR", "REMOTE_ADDR", "CONTENT_TYPE"]
        return [repr([asked.get(key) for key in keys]).encode(), b"|", asked["wsgi.input"].read()]
    return [b"no"]


patient = BufferedRSGIAdapter(told, AT_MOST)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The web server of the product, with the application above, in one process of two threads."""
    number = free_port()
    server = subprocess.Popen(
        web_command("127.0.0.1", number, 1, "tests.test_read_to_the_end:patient"), cwd=HERE.parent
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


def opened(port: int, start: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(f"{start} HTTP/1.1\r\nHost: here\r\n".encode())
    return connection


def answer(connection: socket.socket) -> tuple[int, bytes]:
    response = http.client.HTTPResponse(connection)
    response.begin()
    return response.status, response.read()


@pytest.mark.parametrize("size", [2, 100_000, 20_000_000])
def test_the_connection_goes_on_after_a_body_nobody_wanted(port: int, size: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for _ in range(3):
            connection.sendall(f"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: {size}\r\n\r\n".encode())
            time.sleep(0.05)  # the headers could have been answered before the body comes
            connection.sendall(b"x" * size)
            assert answer(connection) == (403, b"no")


@pytest.mark.parametrize("announced", [900_000_000, None])
def test_who_sends_more_than_is_read_is_cut_off(port: int, announced: int | None) -> None:
    with opened(port, "POST /") as connection:
        how = f"Content-Length: {announced}" if announced else "Transfer-Encoding: chunked"
        connection.sendall(f"{how}\r\n\r\n".encode())
        chunks = (b"f4240\r\n" + bytes(1_000_000) + b"\r\n") * 100
        with pytest.raises(ConnectionError):
            connection.sendall(chunks)


def test_two_hundred_bodies_that_do_not_come_hold_nobody_up_and_are_given_up(port: int) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(opened(port, "POST /")) for _ in range(200)]
        for connection in slow:
            connection.sendall(b"Content-Length: 1000000\r\n\r\n0123456789")
        with opened(port, "GET /") as other:
            other.sendall(b"\r\n")
            assert answer(other) == (403, b"no")
        for connection in slow:  # which would wait for ever if a thread waited with them
            assert answer(connection) == (408, b"")


@pytest.mark.slow
def test_a_slow_body_that_keeps_coming_is_waited_for(port: int) -> None:
    with opened(port, "POST /") as connection:
        connection.sendall(b"Content-Length: 300000\r\n\r\n")
        for _ in range(6):
            connection.sendall(b"x" * 50_000)
            time.sleep(0.5)
        assert answer(connection) == (403, b"no")


def test_answers_that_nobody_takes_hold_nobody_up_for_long(port: int) -> None:
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(opened(port, "GET /many")).sendall(b"\r\n")
        other = stack.enter_context(opened(port, "GET /"))
        other.sendall(b"\r\n")
        assert answer(other) == (403, b"no")
    with opened(port, "GET /many") as reading:
        reading.sendall(b"\r\n")
        assert answer(reading) == (403, b"x" * 100_000_000)


def test_the_application_is_told_what_was_asked(port: int) -> None:
    with opened(port, "POST /%EC%9E%90%EC%84%B8%ED%9E%88?a=%20b") as connection:
        connection.sendall(b"Cookie: a=1\r\nCookie: b=2\r\nX-A: 1\r\nX-A: 2\r\nX_Forwarded_For: 6.6.6.6\r\n")
        connection.sendall(
            b"Content-Type: text/x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        )
        told_of = ["a=%20b", "a=1; b=2", "1,2", None, "127.0.0.1", "text/x"]
        assert answer(connection) == (403, f"{told_of!r}|abcde".encode())
