"""Killed processes: every score is stored exactly once and every call is in the ledger."""

from __future__ import annotations

import random
import threading
import time

import psycopg
import pytest

from tests.faults.site import Site, command_line, descendants, kill
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.faults]
METRICS = 7  # four rule metrics and three judged ones for each answer


def prepare_run(site: Site, judge: JudgeServer, count: int, *options: str) -> int:
    """A run of so many answers."""
    return int(site.python("-m", "tests.faults.prepare", str(count), judge.base_url, *options).splitlines()[-1])


def assert_each_score_once(site: Site, run: int, answers: int) -> None:
    """Every metric of every answer has exactly one score, and it has a value."""
    counts = site.rows(
        "SELECT COUNT(*), COUNT(DISTINCT answer_id * 1000 + metric_id), "
        "SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) "
        f"FROM evaluation_score WHERE run_id = {run}"
    )
    assert counts[0][:2] == (answers * METRICS, answers * METRICS)
    assert counts[0][2] == 0
    units = site.rows(f"SELECT state, COUNT(*) FROM evaluation_workunit WHERE run_id = {run} GROUP BY state")
    assert units == [("done", answers * 2)]


def cluster_processes(parent: int) -> list[int]:
    """The cluster's processes below ``serve``, its leader first; the web server is not among them."""
    return [pid for pid in descendants(parent) if "qcluster" in command_line(pid)]


@pytest.mark.survives(
    "Twenty kills of workers with lost connections",
    happens="Each score is stored once; every call is in the ledger.",
    see="The run completes.",
)
def test_twenty_kills_and_lost_connections_leave_each_score_exactly_once(site: Site, judge: JudgeServer) -> None:
    run = prepare_run(site, judge, 600)
    parent = site.serve()
    rng = random.Random(7)
    kills = 0
    while kills < 20:
        time.sleep(rng.uniform(0.3, 1.2))
        if not (processes := cluster_processes(parent.pid)):
            continue
        # Every fifth kill takes the cluster's leader, the others any of its processes.
        kill(processes[0] if kills % 5 == 4 else rng.choice(processes))
        kills += 1
        if kills % 7 == 0:
            disturb_database(site)
    site.wait_for(run, "completed", seconds=240)
    assert_each_score_once(site, run, 600)
    reply_count = site.rows(
        "SELECT COUNT(*) FROM evaluation_attempt a JOIN evaluation_workunit u ON u.id = a.unit_id "
        f"WHERE u.run_id = {run}"
    )[0][0]
    # Attempts are written before they are sent, so the judge can never have seen more calls than the ledger.
    assert 600 <= judge.stats()["calls"] <= reply_count
    assert parent.poll() is None


def disturb_database(site: Site) -> None:
    """PostgreSQL: end every other backend. SQLite: hold the write lock longer than the timeout allows."""
    if site.is_postgres:
        with psycopg.connect(site.database_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        return
    threading.Thread(
        target=site.python,
        args=(
            "-c",
            "import sqlite3, time, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60);"
            "c.execute('BEGIN IMMEDIATE'); time.sleep(22); c.execute('ROLLBACK')",
            str(site.folder / "site.sqlite3"),
        ),
    ).start()


@pytest.mark.survives(
    "A run started by several processes at once",
    happens="Its answers are judged once.",
    see="One call an answer.",
)
def test_ten_simultaneous_wakeups_duplicate_nothing(site: Site, judge: JudgeServer) -> None:
    run = prepare_run(site, judge, 60, "--draft")
    site.manage(
        "shell",
        "--no-imports",
        "-c",
        f"""
from evaluation.models import Run
from evaluation.worker.lifecycle import start
from evaluation.worker.dispatch import enqueue_run
start(Run.objects.get(pk={run}))
[enqueue_run({run}) for _ in range(10)]
""",
    )
    drains = [site.start("manage.py", "work", "--once", str(run)) for _ in range(4)]
    site.serve()
    site.wait_for(run, "completed", seconds=60)
    for drain in drains:
        drain.wait(30)
    assert_each_score_once(site, run, 60)
    assert judge.stats()["calls"] == 60


@pytest.mark.survives(
    "Emptied queue tables",
    happens="The sweep queues the work again.",
    see="The run completes.",
)
def test_run_survives_manually_emptied_queue_tables(site: Site, judge: JudgeServer) -> None:
    run = prepare_run(site, judge, 40)
    site.manage(
        "shell",
        "--no-imports",
        "-c",
        "from django_q.models import OrmQ, Schedule; OrmQ.objects.all().delete(); Schedule.objects.all().delete()",
    )
    site.serve()
    site.wait_for(run, "completed", seconds=60)
    assert_each_score_once(site, run, 40)
