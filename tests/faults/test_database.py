"""The database is unavailable, refuses writes, or its clock jumps, while calls are in flight."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import time
from contextlib import closing

import psycopg
import pytest

from tests.faults.site import Site
from tests.faults.test_kills import assert_each_score_once, prepare_run
from tests.faults.test_stopping import control_run
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.endurance]
MAX_CONCURRENCY = 8  # of the endpoint in tests/faults/prepare.py


def execute_in_transaction(site: Site, *statements: str) -> int:
    """Execute the statements in one transaction, without the start-up time of a Django process, and return the row
    count of the first."""
    if site.is_postgres:
        with psycopg.connect(site.database_url) as server:
            row_counts = [server.execute(statement).rowcount for statement in statements]
        return row_counts[0]
    with closing(sqlite3.connect(site.folder / "site.sqlite3", timeout=60, isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        row_counts = [file.execute(statement).rowcount for statement in statements]
        file.execute("COMMIT")
    return row_counts[0]


def shifted_time(site: Site, field: str, hours: str) -> str:
    return f"{field} + INTERVAL '{hours} hour'" if site.is_postgres else f"datetime({field}, '{hours} hour')"


def interrupt_database(site: Site, seconds: float) -> None:
    """Make the database unusable for some seconds. PostgreSQL: every connection is cut and none accepted, as in a
    restart. SQLite: another process holds the lock for longer than a statement waits."""
    if not site.is_postgres:
        site.python(
            "-c",
            "import sqlite3, time, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60);"
            f"c.execute('BEGIN IMMEDIATE'); time.sleep({20 + seconds}); c.execute('ROLLBACK')",
            str(site.folder / "site.sqlite3"),
        )
        return
    server, _, name = site.database_url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        time.sleep(seconds)
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


@pytest.mark.survives(
    "A database that is unreachable or locked for seconds during a run",
    happens="Workers keep replies and write them afterwards; no call is repeated.",
    see="`database unavailable, trying again` in the log.",
)
def test_short_database_outage_costs_no_call_and_loses_no_reply(site: Site, judge: JudgeServer) -> None:
    site.environment["SITE_LEASE_SECONDS"] = "60"
    judge.latency = 0.2
    run = prepare_run(site, judge, 200)
    worker = site.start("manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.stats()["calls"] >= 40)
    interrupt_database(site, 3)
    assert worker.wait(120) == 0
    assert site.state(run) == "completed"
    assert_each_score_once(site, run, 200)
    assert judge.stats()["calls"] == 200


@pytest.mark.survives(
    "A disk that runs full in mid run (SQLite)",
    happens="The run pauses while there is room for the results of calls in flight.",
    see="Reason `storage_full`; `healthcheck`: `disk_short`.",
)
def test_run_pauses_before_disk_is_full_and_resumes_with_free_space(site: Site, judge: JudgeServer) -> None:
    if site.is_postgres:
        pytest.skip("the disk of a database server is not seen from here")
    judge.latency = 0.3
    run = prepare_run(site, judge, 60)
    filler = site.folder / "filler"
    free = shutil.disk_usage(site.folder).free // 1_000_000
    # The disk counts as full when 300 of the megabytes that are free now are gone.
    site.environment["CONCORD_MIN_FREE_DISK_MB"] = str(free - 300)
    worker = site.start("manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.stats()["calls"] >= MAX_CONCURRENCY)
    with filler.open("wb") as filler_file:
        os.posix_fallocate(filler_file.fileno(), 0, 600_000_000)
    assert worker.wait(60) == 0
    assert site.rows(f"SELECT state, reason FROM evaluation_run WHERE id = {run}") == [("paused", "storage_full")]
    assert site.rows(f"SELECT COUNT(*) FROM evaluation_workunit WHERE run_id = {run} AND state = 'leased'") == [(0,)]
    call_count = judge.stats()["calls"]
    reply_count = site.rows("SELECT COUNT(*) FROM evaluation_reply WHERE outcome = 'ok'")[0][0]
    assert reply_count == call_count < 60  # whatever was paid for is there
    filler.unlink()
    site.environment["CONCORD_MIN_FREE_DISK_MB"] = "0"
    control_run(site, run, "resume")
    site.manage("work", "--once", str(run))
    assert_each_score_once(site, run, 60)
    assert judge.stats()["calls"] == 60


@pytest.mark.survives(
    "A clock that jumps an hour ahead",
    happens="Leases end early; at most the calls in flight are repeated.",
    see="Each score once.",
)
def test_clock_jump_ahead_repeats_at_most_the_calls_in_flight(site: Site, judge: JudgeServer) -> None:
    # A lease that outlasts the test on any machine: only the jump makes it lapse.
    site.environment |= {"SITE_LEASE_SECONDS": "120", "CONCORD_CALL_SECONDS": "60"}
    judge.latency = 0.5
    run = prepare_run(site, judge, 200)
    workers = [site.start("manage.py", "work", "--once", str(run)) for _ in range(2)]
    wait_until(lambda: judge.stats()["calls"] >= 2 * MAX_CONCURRENCY and judge.stats()["in_flight"] > 0, seconds=120)
    # Seen from leases, an hour passes at once.
    hour = shifted_time(site, "lease_until", "-1")
    leased_count = execute_in_transaction(
        site, f"UPDATE evaluation_workunit SET lease_until = {hour} WHERE state = 'leased'"
    )
    assert leased_count > 0
    for worker in workers:
        assert worker.wait(300) == 0
    assert_each_score_once(site, run, 200)
    assert 200 <= judge.stats()["calls"] <= 200 + leased_count


@pytest.mark.survives(
    "A clock set back after a worker died",
    happens="Its units are taken over.",
    see="The run completes.",
)
def test_clock_set_back_strands_no_unit_of_dead_worker(site: Site, judge: JudgeServer) -> None:
    site.environment["CONCORD_CALL_SECONDS"] = "60"
    judge.latency = 0.3
    run = prepare_run(site, judge, 100)
    worker = site.start("manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.stats()["calls"] >= MAX_CONCURRENCY, seconds=120)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    leased_count = execute_in_transaction(
        site,
        f"UPDATE evaluation_workunit SET lease_until = {shifted_time(site, 'lease_until', '+1')} WHERE state = "
        f"'leased'",
        f"UPDATE evaluation_endpointquotalease SET seen_at = {shifted_time(site, 'seen_at', '+1')}",
    )
    assert leased_count > 0
    site.manage("work", "--once", str(run))
    assert site.state(run) == "completed"
    assert_each_score_once(site, run, 100)
