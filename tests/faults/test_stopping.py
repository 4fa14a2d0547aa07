"""Pausing, cancelling and starting while calls are in flight and others press the same button (T6, T11, T13)."""

from __future__ import annotations

import signal
import time

import pytest

from tests.faults.site import Site
from tests.faults.test_kills import assert_each_score_once, prepare_run
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.faults]
IN_FLIGHT = 8  # the endpoint's limit in tests/faults/prepare.py


def control_run(site: Site, run: int, verb: str) -> None:
    site.manage(
        "shell",
        "--no-imports",
        "-c",
        "from evaluation.worker import lifecycle; from evaluation.models import Run; "
        f"lifecycle.{verb}(Run.objects.get(pk={run}))",
    )


@pytest.mark.parametrize("verb", ["pause", "cancel"])
@pytest.mark.survives(
    "A run paused or cancelled under load",
    happens="Only calls in flight are completed and stored.",
    see="State `paused` or `cancelled`.",
)
def test_only_calls_in_flight_are_stored_after_a_stop(site: Site, judge: JudgeServer, verb: str) -> None:
    judge.latency = 0.5
    run = prepare_run(site, judge, 200)
    worker = site.start("manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.stats()["calls"] >= IN_FLIGHT * 2)
    control_run(site, run, verb)
    call_count = judge.stats()["calls"]
    worker.wait(60)
    assert judge.stats()["calls"] <= call_count + IN_FLIGHT
    assert judge.stats()["peak"] <= IN_FLIGHT
    done_count = site.rows(
        f"SELECT COUNT(*) FROM evaluation_workunit WHERE run_id = {run} AND kind = 'judge' AND state = 'done'"
    )
    score_count = site.rows(
        f"SELECT COUNT(*) FROM evaluation_score WHERE run_id = {run} AND judge_version_id IS NOT NULL"
    )
    assert score_count[0][0] == 3 * done_count[0][0]
    leased = site.rows(f"SELECT COUNT(*) FROM evaluation_workunit WHERE run_id = {run} AND state = 'leased'")
    assert leased == [(0,)]
    if verb == "pause":
        judge.latency = 0.01
        control_run(site, run, "resume")
        site.manage("work", "--once", str(run))
        assert_each_score_once(site, run, 200)


def test_simultaneous_start_requests_start_the_run_once(site: Site, judge: JudgeServer) -> None:
    run = prepare_run(site, judge, 50, "--draft")
    code = (
        "from evaluation.worker import lifecycle; from evaluation.models import Run; "
        f"print(lifecycle.start(Run.objects.get(pk={run})))"
    )
    processes = [site.start("manage.py", "shell", "--no-imports", "-c", code) for _ in range(3)]
    for process in processes:
        assert process.wait(60) == 0
    units = site.rows(f"SELECT COUNT(*), COUNT(DISTINCT key) FROM evaluation_workunit WHERE run_id = {run}")
    assert units == [(100, 100)]
    assert site.rows(f"SELECT COUNT(*) FROM evaluation_runevent WHERE run_id = {run} AND verb = 'started'") == [(1,)]


@pytest.mark.survives(
    "A worker that sleeps longer than its lease",
    happens="Another worker takes over; the late result changes no score.",
    see="Two calls for the answer in the ledger.",
)
def test_worker_with_expired_lease_writes_only_its_attempt(site: Site, judge: JudgeServer) -> None:
    judge.latency = 3.0
    run = prepare_run(site, judge, 8)
    zombie = site.start("manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.stats()["calls"] >= IN_FLIGHT)
    # rules are done while calls are out: who is stopped in the middle of a transaction holds SQLite's lock
    done_query = "SELECT COUNT(*) FROM evaluation_workunit WHERE kind = 'rules' AND state = 'done'"
    wait_until(lambda: site.rows(done_query) == [(8,)])
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
