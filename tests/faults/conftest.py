"""Fixtures of the fault lane: a site on each database, with a judge server in the test's own process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.site import Site, fresh_database
from tests.judge_server import JudgeServer


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    """A judge that answers after 50 ms."""
    with JudgeServer(latency=0.05, keep_log=False) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, tmp_path: Path, judge: JudgeServer) -> Iterator[Site]:
    """A migrated site; PostgreSQL only where ``CONCORD_TEST_POSTGRES`` names a server."""
    if request.param == "postgres" and not os.environ.get("CONCORD_TEST_POSTGRES"):
        pytest.skip("CONCORD_TEST_POSTGRES is not set")
    with fresh_database(request.param, tmp_path) as url:
        made = Site(tmp_path, url, judge.origin)
        made.manage("migrate", "--verbosity", "0")
        try:
            yield made
        finally:
            made.stop()
