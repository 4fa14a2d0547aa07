"""The database goes away, refuses to be written, or its clock jumps, while calls are out (T7, T8, T9)."""

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
from tests.faults.test_kills import assert_each_score_once, prepared
from tests.faults.test_stopping import act
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.endurance]
PLACES = 8  # of the endpoint in tests/faults/prepare.py


def at_once(site: Site, *statements: str) -> int:
    """Carry out the statements in one transaction, without the seconds a Django process takes to start: what they are
    about is still so. How many rows the first one changed."""
    if site.is_postgres:
        with psycopg.connect(site.database_url) as server:
            changed = [server.execute(statement).rowcount for statement in statements]
        return changed[0]
    with closing(sqlite3.connect(site.folder / "site.sqlite3", timeout=60, isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        changed = [file.execute(statement).rowcount for statement in statements]
        file.execute("COMMIT")
    return changed[0]


def moved(site: Site, field: str, hours: str) -> str:
    return f"{field} + INTERVAL '{hours} hour'" if site.is_postgres else f"datetime({field}, '{hours} hour')"


def take_away(site: Site, seconds: float) -> None:
    """PostgreSQL: as in a restart, every connection is cut and no new one taken. SQLite: somebody holds the lock for
    longer than a statement waits."""
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


def test_t7_a_database_that_is_away_for_seconds_costs_no_call_and_loses_no_reply(
    site: Site, judge: JudgeServer
) -> None:
    site.environment["SITE_LEASE_SECONDS"] = "60"
    judge.latency = 0.2
    run = prepared(site, judge, 200)
    worker = site.start("manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.stats()["calls"] >= 40)
    take_away(site, 3)
    assert worker.wait(120) == 0
    assert site.state(run) == "completed"
    assert_each_score_once(site, run, 200)
    assert judge.stats()["calls"] == 200


def test_t8_a_run_pauses_before_the_disk_is_full_and_goes_on_when_there_is_room(site: Site, judge: JudgeServer) -> None:
    if site.is_postgres:
        pytest.skip("the disk of a database server is not seen from here")
    judge.latency = 0.3
    run = prepared(site, judge, 60)
    filler = site.folder / "filler"
    free = shutil.disk_usage(site.folder).free // 1_000_000
    # The disk counts as full when 300 of the megabytes that are free now are gone.
    site.environment["CONCORD_MIN_FREE_DISK_MB"] = str(free - 300)
    worker = site.start("manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.stats()["calls"] >= PLACES)
    with filler.open("wb") as taken:
        os.posix_fallocate(taken.fileno(), 0, 600_000_000)
    assert worker.wait(60) == 0
    assert site.rows(f"SELECT state, reason FROM evaluation_run WHERE id = {run}") == [("paused", "storage_full")]
    assert site.rows(f"SELECT COUNT(*) FROM evaluation_workunit WHERE run_id = {run} AND state = 'leased'") == [(0,)]
    seen = judge.stats()["calls"]
    sent = site.rows("SELECT COUNT(*) FROM evaluation_reply WHERE outcome = 'ok'")[0][0]
    assert sent == seen < 60  # whatever was paid for is there
    filler.unlink()
    site.environment["CONCORD_MIN_FREE_DISK_MB"] = "0"
    act(site, run, "resume")
    site.manage("work", "--once", str(run))
    assert_each_score_once(site, run, 60)
    assert judge.stats()["calls"] == 60


def test_t9_a_clock_that_jumps_ahead_repeats_at_most_what_was_in_hands(site: Site, judge: JudgeServer) -> None:
    # A lease that outlasts the test on any machine: only the jump makes it lapse.
    site.environment |= {"SITE_LEASE_SECONDS": "120", "CONCORD_CALL_SECONDS": "60"}
    judge.latency = 0.5
    run = prepared(site, judge, 200)
    workers = [site.start("manage.py", "work", "--once", str(run)) for _ in range(2)]
    wait_until(lambda: judge.stats()["calls"] >= 2 * PLACES and judge.stats()["in_flight"] > 0, seconds=120)
    # Seen from leases, an hour passes at once.
    hour = moved(site, "lease_until", "-1")
    in_hands = at_once(site, f"UPDATE evaluation_workunit SET lease_until = {hour} WHERE state = 'leased'")
    assert in_hands > 0
    for worker in workers:
        assert worker.wait(300) == 0
    assert_each_score_once(site, run, 200)
    assert 200 <= judge.stats()["calls"] <= 200 + in_hands


def test_t9_a_clock_that_is_set_back_strands_no_unit_of_a_dead_worker(site: Site, judge: JudgeServer) -> None:
    site.environment["CONCORD_CALL_SECONDS"] = "60"
    judge.latency = 0.3
    run = prepared(site, judge, 100)
    worker = site.start("manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.stats()["calls"] >= PLACES, seconds=120)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    stranded = at_once(
        site,
        f"UPDATE evaluation_workunit SET lease_until = {moved(site, 'lease_until', '+1')} WHERE state = 'leased'",
        f"UPDATE evaluation_endpointquotalease SET seen_at = {moved(site, 'seen_at', '+1')}",
    )
    assert stranded > 0
    site.manage("work", "--once", str(run))
    assert site.state(run) == "completed"
    assert_each_score_once(site, run, 100)
