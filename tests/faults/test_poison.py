"""An answer that kills every worker that touches it is parked, and the rest of the run completes (T4)."""

from __future__ import annotations

import subprocess
import time

import pytest

from tests.faults.site import Site
from tests.faults.test_kills import prepare_run
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.faults]


@pytest.mark.survives(
    "An answer that crashes its worker",
    happens="It is given up after five tries; the others are scored.",
    see="Reason `crash_loop`.",
)
def test_answer_that_crashes_its_worker_is_parked_after_five_tries(site: Site, judge: JudgeServer) -> None:
    run = prepare_run(site, judge, 30)
    end = time.monotonic() + 120
    while site.state(run) in {"preflight", "running"} and time.monotonic() < end:
        worker: subprocess.Popen[bytes] = site.start("-m", "tests.faults.crashing_cluster", "work", "--once", str(run))
        worker.wait(60)
        time.sleep(0.5)
    assert site.state(run) == "completed"  # one answer in thirty is below the limit of 10 %
    failed_units = site.rows(
        f"SELECT state, reason, tries FROM evaluation_workunit WHERE run_id = {run} AND state <> 'done'"
    )
    assert failed_units == [("failed", "crash_loop", 5)]
    scores = site.rows(
        "SELECT status, reason, COUNT(*) FROM evaluation_score "
        f"WHERE run_id = {run} AND status = 'failed' GROUP BY 1, 2"
    )
    assert scores == [("failed", "crash_loop", 3)]
