"""Hundreds of unauthenticated connections that send ten bytes of a body and wait do not block other requests. Prints
the measurements (-s)."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from statistics import median

import pytest

from tests.faults.site import Site, free_port
from tests.faults.test_restarts import site_answers
from tests.faults.test_watchdog import wait_until

pytestmark = [pytest.mark.faults]
SLOW = 200
START = b"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n0123456789"


@pytest.mark.survives(
    "200 request bodies that come slowly",
    happens="Other requests are not delayed.",
    see="408 for the slow ones.",
)
def test_slow_request_bodies_do_not_block_other_requests(site: Site) -> None:
    site.start("manage.py", "serve", "--no-worker", "--port", str(port := free_port()))
    wait_until(lambda: site_answers(port), seconds=60)
    seconds_by_phase: dict[str, list[float]] = {"before": [], "beside them": []}
    with ExitStack() as stack:
        for phase, samples in seconds_by_phase.items():
            if phase != "before":
                slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(SLOW)]
                for connection in slow:
                    connection.sendall(START)
            for _ in range(20):
                start_time = time.monotonic()
                assert site_answers(port)
                samples.append(time.monotonic() - start_time)
        for connection in slow:  # nobody was cut off meanwhile
            connection.settimeout(0)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
        slow[0].settimeout(60)
        assert slow[0].recv(100).startswith(b"HTTP/1.1 408")
    summaries = [
        f"{phase} {median(samples) * 1000:.0f} ms (at most {max(samples) * 1000:.0f})"
        for phase, samples in seconds_by_phase.items()
    ]
    print(f"\n{site.database_url.split(':')[0]}: /login/ {SLOW} slow bodies: {', '.join(summaries)}")
