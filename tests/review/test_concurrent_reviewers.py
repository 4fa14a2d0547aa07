"""Twelve people empty queues over HTTP at once: no item is lost, doubled, or seen by the wrong person.

A real server with several threads, real sockets, and each of the two databases. Fifty people and 5,000 items are in
the fault lane.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.site import Site, fresh_database
from tests.review.people import empty_queues


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A migrated site without workers; PostgreSQL only where ``CONCORD_TEST_POSTGRES`` names a server."""
    if request.param == "postgres" and not os.environ.get("CONCORD_TEST_POSTGRES"):
        pytest.skip("CONCORD_TEST_POSTGRES is not set")
    with fresh_database(request.param, tmp_path) as url:
        made = Site(tmp_path, url, "")
        made.manage("migrate", "--verbosity", "0")
        try:
            yield made
        finally:
            made.stop()


def test_twelve_people_empty_two_queues_and_nothing_is_lost_doubled_or_misdirected(site: Site) -> None:
    empty_queues(site, 12, {1: 300, 2: 150})
