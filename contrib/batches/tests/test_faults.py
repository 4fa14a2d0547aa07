"""Kills while calls are in batches: every score once, and no recorded call is paid for twice."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from tests.faults.conftest import judge, migrated, site
from tests.faults.site import Site, kill
from tests.faults.test_kills import assert_each_score_once, cluster_processes, disturb_database, prepare_run
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.faults, pytest.mark.slow]
__all__ = ["judge", "migrated", "site"]
ANSWERS = 40


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def kill_when(site: Site, run: int, condition: Callable[[], bool]) -> None:
    """Kill a worker with SIGKILL the moment the condition holds; others may run before it."""
    worker = site.start("manage.py", "work", "--once", str(run))
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)
        if worker.poll() is not None:
            worker = site.start("manage.py", "work", "--once", str(run))
    kill(worker.pid)
    worker.wait()


def attempt_counts(site: Site) -> list[tuple[str, int]]:
    return site.rows(
        "SELECT COALESCE(r.outcome, 'unknown'), COUNT(*) FROM evaluation_attempt a "
        "LEFT JOIN evaluation_reply r ON r.attempt_id = a.id GROUP BY 1 ORDER BY 1"
    )


@pytest.mark.parametrize("kind", ["upload", "create", "look", "content"])
def test_worker_killed_at_any_batch_step_leaves_each_score_once(site: Site, judge: JudgeServer, kind: str) -> None:
    """The server has done the requested step; the response never arrives."""
    run = prepare_run(site, judge, ANSWERS, "--batch")
    judge.batches.slow[kind] = 3.0
    kill_when(site, run, lambda: judge.batches.request_counts[kind] == 1)
    time.sleep(0.5)
    judge.batches.slow.clear()
    site.serve()
    site.wait_for(run, "completed", seconds=120)
    assert_each_score_once(site, run, ANSWERS)
    assert (len(judge.batches.stored), len(judge.batches.requests), judge.calls) == (1, ANSWERS, 0)
    # A file that was handed over and belongs to no batch was never paid for.
    unsent = [("not_sent", ANSWERS)] if kind == "upload" else []
    assert attempt_counts(site) == [*unsent, ("ok", ANSWERS)]


def test_random_kills_during_batches_leave_every_score_exactly_once(site: Site, judge: JudgeServer) -> None:
    count = 300
    run = prepare_run(site, judge, count, "--batch")
    judge.batches.slow = dict.fromkeys(("upload", "create", "look", "content"), 0.5)
    judge.batches.seconds, judge.batches.ending, judge.batches.max_lines = 1.0, "expired", count // 3
    parent = site.serve()
    rng = random.Random(11)
    for kills in range(12):
        time.sleep(rng.uniform(0.5, 3.0))
        if alive := cluster_processes(parent.pid):
            kill(alive[0] if kills % 5 == 4 else rng.choice(alive))
        if kills == 6:
            disturb_database(site)
    judge.batches.slow.clear()
    site.wait_for(run, "completed", seconds=300)
    assert_each_score_once(site, run, count)
    # What the judge has answered stands in the ledger, and nothing was asked for that does not.
    answered_count = len(judge.batches.requests) + judge.calls
    outcome_counts = dict(attempt_counts(site))
    assert outcome_counts["ok"] <= answered_count <= outcome_counts["ok"] + outcome_counts.get("unknown", 0)
    assert site.rows("SELECT COUNT(*) FROM batches_judgebatch WHERE state IN ('made','uploaded','creating','sent')")[
        0
    ] == (0,)
    assert parent.poll() is None


def test_cancelling_an_open_batch_reads_its_finished_calls(site: Site, judge: JudgeServer) -> None:
    run = prepare_run(site, judge, ANSWERS, "--batch")
    judge.batches.ending, judge.batches.max_lines = "stuck", 10
    site.serve()
    wait_until(lambda: judge.batches.request_counts["look"] > 0)
    site.manage(
        "shell",
        "--no-imports",
        "-c",
        "from evaluation.models.runs import Run; from evaluation.worker.lifecycle import cancel;"
        f"assert cancel(Run.objects.get(pk={run}))",
    )
    wait_until(lambda: dict(attempt_counts(site)) == {"not_sent": ANSWERS - 10, "ok": 10}, seconds=60)
    units = site.rows("SELECT state, COUNT(*) FROM evaluation_workunit WHERE kind = 'judge' GROUP BY 1 ORDER BY 1")
    assert units == [("done", 10), ("skipped", ANSWERS - 10)]
