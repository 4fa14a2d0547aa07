"""Pausing, cancelling and starting while calls are in flight and others press the same button (T6, T11, T13)."""

from __future__ import annotations

import signal
import time

import pytest

from tests.faults.site import Site
from tests.faults.test_kills import assert_each_score_once, prepared
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.faults]
IN_FLIGHT = 8  # the endpoint's limit in tests/faults/prepare.py


def act(site: Site, run: int, verb: str) -> None:
    site.manage(
        "shell",
        "--no-imports",
        "-c",
        "from evaluation.worker import lifecycle; from evaluation.models import Run; "
        f"lifecycle.{verb}(Run.objects.get(pk={run}))",
    )


@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_at_most_the_calls_in_flight_still_come_in_after_a_stop(site: Site, judge: JudgeServer, verb: str) -> None:
    judge.latency = 0.5
    run = prepared(site, judge, 200)
    worker = site.start("manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.stats()["calls"] >= IN_FLIGHT * 2)
    act(site, run, verb)
    seen = judge.stats()["calls"]
    worker.wait(60)
    assert judge.stats()["calls"] <= seen + IN_FLIGHT
    assert judge.stats()["peak"] <= IN_FLIGHT
    done = site.rows(
        f"SELECT COUNT(*) FROM evaluation_workunit WHERE run_id = {run} AND kind = 'judge' AND state = 'done'"
    )
    scored = site.rows(f"SELECT COUNT(*) FROM evaluation_score WHERE run_id = {run} AND judge_version_id IS NOT NULL")
    assert scored[0][0] == 3 * done[0][0]
    leased = site.rows(f"SELECT COUNT(*) FROM evaluation_workunit WHERE run_id = {run} AND state = 'leased'")
    assert leased == [(0,)]
    if verb == "pause":
        judge.latency = 0.01
        act(site, run, "resume")
        site.manage("work", "--once", str(run))
        assert_each_score_once(site, run, 200)


def test_two_people_press_start_and_one_run_starts(site: Site, judge: JudgeServer) -> None:
    run = prepared(site, judge, 50, "--draft")
    code = (
        "from evaluation.worker import lifecycle; from evaluation.models import Run; "
        f"print(lifecycle.start(Run.objects.get(pk={run})))"
    )
    both = [site.start("manage.py", "shell", "--no-imports", "-c", code) for _ in range(3)]
    for process in both:
        assert process.wait(60) == 0
    units = site.rows(f"SELECT COUNT(*), COUNT(DISTINCT key) FROM evaluation_workunit WHERE run_id = {run}")
    assert units == [(100, 100)]
    assert site.rows(f"SELECT COUNT(*) FROM evaluation_runevent WHERE run_id = {run} AND verb = 'started'") == [(1,)]


def test_a_worker_that_slept_past_its_lease_writes_nothing_but_its_attempt(site: Site, judge: JudgeServer) -> None:
    judge.latency = 3.0
    run = prepared(site, judge, 8)
    zombie = site.start("manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.stats()["calls"] >= IN_FLIGHT)
    # rules are done while calls are out: who is stopped in the middle of a transaction holds SQLite's lock
    done = "SELECT COUNT(*) FROM evaluation_workunit WHERE kind = 'rules' AND state = 'done'"
    wait_until(lambda: site.rows(done) == [(8,)])
    time.sleep(0.5)
    zombie.send_signal(signal.SIGSTOP)
    time.sleep(5)  # the lease is 4 seconds
    judge.latency = 0.01
    site.manage("work", "--once", str(run))
    zombie.send_signal(signal.SIGCONT)
    zombie.wait(60)
    assert_each_score_once(site, run, 8)
    attempts = site.rows("SELECT COUNT(*), COUNT(DISTINCT unit_id) FROM evaluation_attempt")
    assert attempts == [(16, 8)]
