"""Each process of ``serve`` and each pair of them killed again and again in mid run: the site is back soon and the run
ends complete. What was measured is printed (-s)."""

from __future__ import annotations

import random
import time
from statistics import median

import pytest

from tests.faults.site import Site, free_port, kill
from tests.faults.test_kills import assert_each_score_once, cluster_processes, prepared
from tests.faults.test_restarts import BACK_SECONDS, answers, web_processes
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.endurance]
KILLS = 25
ANSWERS = 2_000  # more than are judged while it is killed


def victim(parent: int, name: str) -> int:
    """One process of the kind; waits for it where it is being started."""
    found: list[int] = []
    wait_until(lambda: found.extend(_found(parent, name)) or found, seconds=BACK_SECONDS)
    return found[0]


def _found(parent: int, name: str) -> list[int]:
    if name == "cluster leader":
        return cluster_processes(parent)[:1]
    return web_processes(parent)[:1] if name == "web parent" else web_processes(parent)[1:]


@pytest.mark.parametrize(
    "names",
    [
        "web worker",
        "web parent",
        "cluster leader",
        "web worker+web parent",
        "web worker+cluster leader",
        "web parent+cluster leader",
    ],
)
def test_killed_again_and_again_the_site_answers_soon_and_the_run_ends_complete(
    site: Site, judge: JudgeServer, names: str
) -> None:
    site.environment |= {"SITE_LEASE_SECONDS": "90", "SITE_WEDGED_SECONDS": "120"}  # as by default
    judge.latency = 2.0
    run = prepared(site, judge, ANSWERS)
    parent = site.start("manage.py", "serve", "--port", str(port := free_port()))
    wait_until(lambda: answers(port) and judge.stats()["calls"] > 10, seconds=180)
    rng, back, called = random.Random(7), [], []
    for _ in range(KILLS):
        for pid in [victim(parent.pid, name) for name in names.split("+")]:
            kill(pid)
        killed, calls = time.monotonic(), judge.stats()["calls"] + 8  # those in flight may still be counted
        time.sleep(0.2)
        wait_until(lambda: answers(port), seconds=60)
        back.append(time.monotonic() - killed)
        wait_until(lambda since=calls: judge.stats()["calls"] > since, seconds=60)
        called.append(time.monotonic() - killed)
        time.sleep(rng.uniform(1, 4))
    assert site.state(run) == "running"  # all kills were in mid run
    judge.latency = 0.01
    site.wait_for(run, "completed", seconds=240)
    assert parent.poll() is None
    assert_each_score_once(site, run, ANSWERS)
    print(
        f"\n{site.database_url.split(':')[0]}, {names}: {KILLS} kills; site back after {median(back):.1f} s "
        f"(at most {max(back):.1f}), next calls after {median(called):.1f} s (at most {max(called):.1f}); "
        f"{ANSWERS} of {ANSWERS} answers scored once, {judge.stats()['calls'] - ANSWERS} calls repeated; "
        f"{site.rows('SELECT part, count FROM evaluation_processrestart ORDER BY part')}"
    )
    assert max(back) < BACK_SECONDS
