"""A read-only database: a message, no partial writes, and reading continues."""

from __future__ import annotations

import http.cookiejar
import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import psycopg
import pytest

from tests.faults.site import ROOT, Site, free_port
from tests.faults.test_kills import assert_each_score_once, prepare_run
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.endurance]
# Root may write what nobody may write, unless it gives up that right.
MORTAL = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


def set_read_only(site: Site, state: bool) -> None:
    """Switch the database to read-only or back. SQLite: the file's permission. PostgreSQL: the database's setting for
    new sessions; open ones are ended."""
    if not site.is_postgres:
        # The files beside it (-wal, -shm) are made with its permissions.
        for file in site.folder.glob("site.sqlite3*"):
            file.chmod(0o444 if state else 0o644)
        return
    server, _, name = site.database_url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {"on" if state else "off"}')
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


def start_process(site: Site, *arguments: str) -> subprocess.Popen[bytes]:
    log = (site.folder / "log").open("ab")
    process = subprocess.Popen(
        [*MORTAL, sys.executable, *arguments],
        cwd=ROOT, env=site.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    site.processes.append(process)
    return process


def read_log(site: Site) -> str:
    return (site.folder / "log").read_text(errors="replace")


def table_counts(site: Site) -> list[tuple[int, ...]]:
    tables = ("attempt", "reply", "score", "finding", "preflight", "runevent")
    return site.rows("SELECT " + ", ".join(f"(SELECT COUNT(*) FROM evaluation_{name})" for name in tables))


@pytest.mark.survives(
    "A read-only database at a worker's start",
    happens="No call is made and nothing is written.",
    see="Exit 1 with the reason.",
)
def test_worker_reports_read_only_database_and_writes_nothing(site: Site, judge: JudgeServer) -> None:
    run = prepare_run(site, judge, 30)
    counts = table_counts(site)
    set_read_only(site, True)
    worker = start_process(site, "manage.py", "work", "--once", str(run))
    assert worker.wait(120) == 1
    assert "The database is read-only at the moment" in read_log(site)
    assert "Traceback" not in read_log(site)
    assert (judge.calls, judge.preflights) == (0, 0)
    set_read_only(site, False)
    assert table_counts(site) == counts
    assert site.state(run) == "preflight"
    site.manage("work", "--once", str(run))
    assert_each_score_once(site, run, 30)


def test_waiting_worker_resumes_when_database_is_writable_again(site: Site, judge: JudgeServer) -> None:
    run = prepare_run(site, judge, 30)
    set_read_only(site, True)
    worker = start_process(site, "manage.py", "work", "--once", str(run))
    wait_until(lambda: "database unavailable" in read_log(site), seconds=120)
    set_read_only(site, False)
    assert worker.wait(120) == 0
    assert_each_score_once(site, run, 30)
    assert judge.calls == 30


@pytest.mark.survives(
    "A database that turns read-only in mid run (PostgreSQL)",
    happens="Replies are kept for 90 seconds and written afterwards.",
    see="Warnings in the log.",
)
def test_replies_received_while_read_only_are_written_afterwards(site: Site, judge: JudgeServer) -> None:
    if not site.is_postgres:
        pytest.skip("an open SQLite file stays writable")
    site.environment["SITE_LEASE_SECONDS"] = "120"
    judge.latency = 0.3
    run = prepare_run(site, judge, 100)
    worker = start_process(site, "manage.py", "work", "--once", str(run))
    wait_until(lambda: judge.calls >= 20, seconds=120)
    set_read_only(site, True)
    wait_until(lambda: "read-only transaction" in read_log(site), seconds=60)
    set_read_only(site, False)
    assert worker.wait(300) == 0
    assert_each_score_once(site, run, 100)
    assert judge.calls == 100


@pytest.mark.survives(
    "A read-only database under the site",
    happens="Pages can be read; nothing is half written.",
    see="503 `database_read_only` for writes.",
)
def test_pages_stay_readable_and_failed_writes_are_reported(site: Site, judge: JudgeServer) -> None:
    run = prepare_run(site, judge, 3)
    site.manage(
        "shell", "--no-imports", "-c",
        "from evaluation.models.accounts import Project, RoleGrant, User; "
        "u = User.objects.create_user('someone', password='a good password'); "
        "[RoleGrant.objects.create(user=u, project=p, role='evaluator') for p in Project.objects.all()]",
    )  # fmt: skip
    base = f"http://127.0.0.1:{(port := free_port())}"
    start_process(site, "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}")
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

    def post(path: str, **fields: str) -> tuple[int, str]:
        token = next(cookie.value for cookie in jar if "csrf" in cookie.name)
        body = urllib.parse.urlencode({"csrfmiddlewaretoken": token, **fields}).encode()
        try:
            with browser.open(f"{base}{path}", body) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def is_reachable() -> bool:
        try:
            return bool(browser.open(f"{base}/login/").status == 200)
        except OSError:
            return False

    wait_until(is_reachable, seconds=120)
    assert post("/login/", username="someone", password="a good password")[0] == 200
    set_read_only(site, True)
    wait_until(lambda: browser.open(f"{base}/runs/").status == 200, seconds=30)
    status, page = post(f"/runs/{run}/pause/")
    assert (status, "The database is read-only at the moment" in page) == (503, True)
    assert browser.open(f"{base}/runs/{run}/").status == 200
    set_read_only(site, False)
    wait_until(lambda: post(f"/runs/{run}/pause/")[0] == 200, seconds=30)
    assert site.state(run) == "paused"
