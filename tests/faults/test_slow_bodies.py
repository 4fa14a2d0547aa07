"""Hundreds of connections without a name that send ten bytes of a body and wait hold up nobody. What was measured is
printed (-s)."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from statistics import median

import pytest

from tests.faults.site import Site, free_port
from tests.faults.test_restarts import answers
from tests.faults.test_watchdog import wait_until

pytestmark = [pytest.mark.faults]
SLOW = 200
START = b"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n0123456789"


def test_two_hundred_slow_bodies_hold_nobody_up(site: Site) -> None:
    site.start("manage.py", "serve", "--no-worker", "--port", str(port := free_port()))
    wait_until(lambda: answers(port), seconds=60)
    took: dict[str, list[float]] = {"before": [], "beside them": []}
    with ExitStack() as stack:
        for when, several in took.items():
            if when != "before":
                slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(SLOW)]
                for one in slow:
                    one.sendall(START)
            for _ in range(20):
                started = time.monotonic()
                assert answers(port)
                several.append(time.monotonic() - started)
        for one in slow:  # nobody was cut off meanwhile
            one.settimeout(0)
            with pytest.raises(BlockingIOError):
                one.recv(1)
        slow[0].settimeout(60)
        assert slow[0].recv(100).startswith(b"HTTP/1.1 408")
    told = [
        f"{when} {median(several) * 1000:.0f} ms (at most {max(several) * 1000:.0f})" for when, several in took.items()
    ]
    print(f"\n{site.database_url.split(':')[0]}: /login/ {SLOW} slow bodies: {', '.join(told)}")
