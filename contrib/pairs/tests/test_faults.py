"""Repeated kills of a comparison's process: each pair is compared once, and paid once except for the calls that
died."""

from __future__ import annotations

import time

import pytest

from tests.faults.conftest import judge, migrated, site
from tests.faults.site import Site, kill
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.faults, pytest.mark.slow]
__all__ = ["judge", "migrated", "site"]
PAIRS = 300
COMMAND = ("manage.py", "judge_pairs", "pairs", "--judge", "remote")


def test_kills_leave_every_pair_compared_exactly_once(site: Site, judge: JudgeServer) -> None:
    site.python("-m", "contrib.pairs.tests.prepare_faults", str(PAIRS), judge.base_url)
    for kills in range(1, 4):
        process = site.start(*COMMAND)
        wait_for_calls(judge, 120 * kills)
        kill(process.pid)
        process.wait()
        time.sleep(5)  # longer than the dead process's lease
    assert "pairs compared" in site.python(*COMMAND)
    count_sql = "SELECT COUNT(*), COUNT(DISTINCT pair_id), COUNT(value) FROM pairs_preference"
    assert site.rows(count_sql) == [(PAIRS, PAIRS, PAIRS)]
    ((attempts, replies),) = site.rows(
        "SELECT COUNT(*), COUNT(r.id) FROM pairs_pairattempt a LEFT JOIN pairs_pairreply r ON r.attempt_id = a.id"
    )
    assert replies == 2 * PAIRS  # each order answered once
    assert replies <= judge.stats()["calls"] <= attempts  # each call stands in the ledger


def wait_for_calls(judge: JudgeServer, count: int) -> None:
    end = time.monotonic() + 60
    while judge.stats()["calls"] < count:
        assert time.monotonic() < end
        time.sleep(0.05)
