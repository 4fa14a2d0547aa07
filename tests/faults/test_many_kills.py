"""Each process of ``serve`` and each pair of them killed repeatedly during a run: the site recovers soon and the run
completes. Prints the measurements (-s)."""

from __future__ import annotations

import random
import time
from statistics import median

import pytest

from tests.faults.site import Site, free_port, kill
from tests.faults.test_kills import assert_each_score_once, cluster_processes, prepare_run
from tests.faults.test_restarts import BACK_SECONDS, site_answers, web_processes
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.endurance]
KILLS = 25
ANSWERS = 2_000  # more than are judged while it is killed


def wait_for_process(parent: int, name: str) -> int:
    """Return one process of the kind, waiting until it has started."""
    pids: list[int] = []
    wait_until(lambda: pids.extend(_matching_pids(parent, name)) or pids, seconds=BACK_SECONDS)
    return pids[0]


def _matching_pids(parent: int, name: str) -> list[int]:
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
@pytest.mark.survives(
    "Web and cluster processes killed 25 times each",
    happens="`serve` replaces them; the site is back within 15 s.",
    see="`restarted` in `healthcheck`; lines of level `ERROR`.",
)
def test_repeated_kills_leave_site_available_and_run_complete(site: Site, judge: JudgeServer, names: str) -> None:
    site.environment |= {"SITE_LEASE_SECONDS": "90", "SITE_WORKER_TIMEOUT_SECONDS": "120"}  # as by default
    judge.latency = 2.0
    run = prepare_run(site, judge, ANSWERS)
    parent = site.start("manage.py", "serve", "--port", str(port := free_port()))
    wait_until(lambda: site_answers(port) and judge.stats()["calls"] > 10, seconds=180)
    rng, recovery_seconds, next_call_seconds = random.Random(7), [], []
    for _ in range(KILLS):
        for pid in [wait_for_process(parent.pid, name) for name in names.split("+")]:
            kill(pid)
        killed, calls = time.monotonic(), judge.stats()["calls"] + 8  # those in flight may still be counted
        time.sleep(0.2)
        wait_until(lambda: site_answers(port), seconds=60)
        recovery_seconds.append(time.monotonic() - killed)
        wait_until(lambda call_count=calls: judge.stats()["calls"] > call_count, seconds=60)
        next_call_seconds.append(time.monotonic() - killed)
        time.sleep(rng.uniform(1, 4))
    assert site.state(run) == "running"  # all kills were in mid run
    judge.latency = 0.01
    site.wait_for(run, "completed", seconds=240)
    assert parent.poll() is None
    assert_each_score_once(site, run, ANSWERS)
    print(
        f"\n{site.database_url.split(':')[0]}, {names}: {KILLS} kills; site back after "
        f"{median(recovery_seconds):.1f} s "
        f"(at most {max(recovery_seconds):.1f}), next calls after {median(next_call_seconds):.1f} s (at most "
        f"{max(next_call_seconds):.1f}); "
        f"{ANSWERS} of {ANSWERS} answers scored once, {judge.stats()['calls'] - ANSWERS} calls repeated; "
        f"{site.rows('SELECT part, count FROM evaluation_processrestart ORDER BY part')}"
    )
    assert max(recovery_seconds) < BACK_SECONDS
