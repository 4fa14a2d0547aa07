"""Kill a worker after the receiver got a message and before the outcome is stored, on both databases."""

from __future__ import annotations

import time

import pytest

from contrib.webhooks.tests.receiver import STALL, receiving
from tests.faults.conftest import judge, migrated, site
from tests.faults.site import Site, kill

pytestmark = pytest.mark.faults
__all__ = ["judge", "migrated", "site"]
LONGEST_SECONDS = 120.0
PREPARE = ("-m", "contrib.webhooks.tests.prepare_faults")


def test_message_in_flight_at_a_kill_is_sent_again_with_its_id(site: Site) -> None:
    with receiving() as receiver:
        receiver.script.append(STALL)
        site.environment["CONCORD_WEBHOOK_ORIGINS"] = receiver.origin
        site.python(*PREPARE, f"{receiver.origin}/hook")
        worker = site.start(*PREPARE, "work")
        deadline = time.monotonic() + LONGEST_SECONDS
        while not receiver.requests and time.monotonic() < deadline:
            time.sleep(0.05)
        kill(worker.pid)
        worker.wait()
        assert site.rows("SELECT state, attempts FROM webhooks_delivery") == [("waiting", 1)]
        while len(receiver.requests) < 2 and time.monotonic() < deadline:
            site.python(*PREPARE, "work")
        first, second = receiver.requests
        assert first[0]["webhook-id"] == second[0]["webhook-id"]
        assert first[1] == second[1]
        assert site.rows("SELECT state, attempts FROM webhooks_delivery") == [("delivered", 2)]
