"""Fixtures of the fault lane: a site on each database, with a judge server in the test's own process."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.faults.site import Site, fresh_database
from tests.judge_server import JudgeServer

KINDS = ("sqlite", "postgres")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark faults as slow unless they are marked ``fast``. If both databases are there, run each fault on one of them,
    in turns; ``make test-endurance`` runs the other half."""
    for item in items:
        if item.get_closest_marker("faults") and not item.get_closest_marker("fast"):
            item.add_marker("slow")
    if not os.environ.get("CONCORD_TEST_POSTGRES"):
        return
    twins: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("faults"):
            twins.setdefault(re.sub("|".join(KINDS), "", item.nodeid), []).append(item)
    complete_twins = [variants for variants in twins.values() if len(variants) == len(KINDS)]
    for number, variants in enumerate(complete_twins):
        variants[number % len(KINDS)].add_marker("endurance")


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    """A judge that answers after 50 ms."""
    with JudgeServer(latency=0.05, keep_log=False) as server:
        yield server


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Of each kind of database one with all tables, made when it is first asked for; gives its address."""
    with ExitStack() as stack:

        @cache
        def address(kind: str) -> str:
            folder = tmp_path_factory.mktemp(kind)
            url = stack.enter_context(fresh_database(kind, folder))
            Site(folder, url, "").manage("migrate", "--verbosity", "0")
            return url

        yield address


@pytest.fixture(params=KINDS)
def site(
    request: pytest.FixtureRequest, tmp_path: Path, judge: JudgeServer, migrated: Callable[[str], str]
) -> Iterator[Site]:
    """A migrated site; PostgreSQL only where ``CONCORD_TEST_POSTGRES`` names a server."""
    if request.param == "postgres" and not os.environ.get("CONCORD_TEST_POSTGRES"):
        pytest.skip("CONCORD_TEST_POSTGRES is not set")
    with fresh_database(request.param, tmp_path, template_url=migrated(request.param)) as url:
        new_site = Site(tmp_path, url, judge.origin)
        try:
            yield new_site
        finally:
            new_site.stop()
