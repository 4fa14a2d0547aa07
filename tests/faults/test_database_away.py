"""A database that is unavailable, deleted or locked, with real processes: 503 with a code in bounded time, and recovery
without a restart; ``healthcheck`` reports it without a traceback."""

from __future__ import annotations

import fcntl
import http.client
import json
import secrets
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.faults.site import Site, free_port
from tests.faults.test_restarts import site_answers
from tests.faults.test_watchdog import wait_until
from tests.review.people import VALUES, Reviewer

pytestmark = [pytest.mark.faults]
BOUND_SECONDS = 25.0  # SQLite's timeout and a bit


def send_request(port: int, path: str, method: str = "GET", body: str = "") -> tuple[int, str, float]:
    """Send a request with a session cookie; return its status, text and seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    csrf = "c" * 32
    headers = {"Cookie": f"sessionid={'x' * 32}; csrftoken={csrf}", "X-CSRFToken": csrf}
    if body:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    start_time = time.monotonic()
    connection.request(method, path, body or None, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), time.monotonic() - start_time


@contextmanager
def database_unavailable(site: Site) -> Iterator[None]:
    """Make the database unavailable: rename the SQLite file, or the PostgreSQL database after ending its
    connections."""
    if not site.is_postgres:
        file = Path(site.database_url.removeprefix("sqlite:///"))
        file.rename(file.with_name("taken-away"))
        yield
        file.with_name("taken-away").rename(file)
        return
    server, _, name = site.database_url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        connection.execute(f'ALTER DATABASE "{name}" RENAME TO "{name}_away"')
        yield
        connection.execute(f'ALTER DATABASE "{name}_away" RENAME TO "{name}"')


@contextmanager
def database_locked(site: Site) -> Iterator[None]:
    """Lock the database: hold the writers' lock file of SQLite, or the login and session tables of PostgreSQL."""
    with ExitStack() as stack:
        if site.is_postgres:
            connection = stack.enter_context(psycopg.connect(site.database_url))
            connection.execute("LOCK TABLE evaluation_failedlogin, django_session")
        else:
            path = Path(f"{site.database_url.removeprefix('sqlite:///')}-turn")
            line = stack.enter_context(path.open("a"))
            fcntl.flock(line, fcntl.LOCK_EX)
        yield


@pytest.fixture
def port(site: Site) -> int:
    """Port of the site's web server."""
    site.start("manage.py", "serve", "--no-worker", "--port", str(new_port := free_port()))
    wait_until(lambda: site_answers(new_port), seconds=120)
    return new_port


@pytest.mark.survives(
    "A database that cannot be reached",
    happens="Requests fail within seconds; the site works again without a restart.",
    see="503; `readyz` and `healthcheck`: `database_away`.",
)
def test_unavailable_database_gives_503_at_once_and_site_recovers(site: Site, port: int) -> None:
    assert send_request(port, "/readyz")[0] == 200
    with database_unavailable(site):
        for _ in range(4):  # by every process, also by those that had opened it
            status, page, seconds = send_request(port, "/question-sets/")
            assert (status, "No such" in page, seconds < 6) == (503, False, True)
            status, response_text, seconds = send_request(port, "/api/v1/runs/")
            assert (status, seconds < 6) == (503, True)
            assert json.loads(response_text)["code"] in {"database_away", "database_replaced"}
        assert send_request(port, "/healthz")[0] == 200
        wait_until(lambda: send_request(port, "/readyz")[0] == 503, seconds=15)
        response_text = site.manage("healthcheck", check=False)
        assert ("database_away" in response_text, "Traceback" in response_text) == (True, False)
    assert send_request(port, "/api/v1/runs/")[0] == 401  # nobody's session, looked up again
    wait_until(lambda: send_request(port, "/readyz")[0] == 200, seconds=15)


@pytest.mark.survives(
    "A lock held for too long",
    happens="Requests wait for a limited time.",
    see="503 with “busy for too long”.",
)
def test_locked_database_gives_503_within_time_limit(site: Site, port: int) -> None:
    form = "username=somebody&password=wrong"
    with database_locked(site):
        status, page, seconds = send_request(port, "/login/", "POST", form)
        assert (status, "busy for too long" in page) == (503, True)
        assert 5 < seconds < BOUND_SECONDS
        assert send_request(port, "/healthz")[2] < 2
    assert send_request(port, "/login/", "POST", form)[0] == 200


@pytest.mark.survives(
    "The SQLite file deleted while the site runs",
    happens="Nothing is written, and no empty file is created.",
    see="503 `database_replaced`.",
)
def test_deleted_database_file_is_detected_and_not_recreated(site: Site, port: int) -> None:
    if site.is_postgres:
        pytest.skip("a server's files are its own")
    form = "username=somebody&password=wrong"
    assert send_request(port, "/login/", "POST", form)[0] == 200
    file = Path(site.database_url.removeprefix("sqlite:///"))
    file.unlink()
    statuses: list[Any] = [send_request(port, "/login/", "POST", form)[0] for _ in range(6)]
    assert statuses == [503] * 6
    assert not file.exists()


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of its own; skips the test where it may not be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Fill a file system."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    yield
    filler.unlink()


def test_readiness_follows_saves_on_a_full_disk(site: Site) -> None:
    """Also where a small write would still find room in the log of the database."""
    if site.is_postgres:
        pytest.skip("a server's files are its own")
    created = json.loads(site.python("-m", "tests.review.crowd", "1", json.dumps({1: 3})))
    ((pk, token),) = created["reviewers"].items()
    with small_disk(site.folder / "disk", 24) as disk:
        shutil.move(site.database_url.removeprefix("sqlite:///"), disk / "site.sqlite3")
        site.environment["DATABASE_URL"] = f"sqlite:///{disk}/site.sqlite3"
        site.start("manage.py", "serve", "--no-worker", "--port", str(port := free_port()))
        wait_until(lambda: site_answers(port), seconds=120)
        reviewer = Reviewer(port, int(pk), token)
        _, card = reviewer.call("POST", f"review-queues/{created['queues'][0]}/next/")

        def save() -> int:
            draft = {"values": VALUES, "comment": secrets.token_hex(10_000)}
            return reviewer.call("POST", f"items/{card['id']}/draft/", draft)[0]

        def is_ready() -> bool:
            return send_request(port, "/readyz")[0] == 200

        assert (save(), is_ready()) == (204, True)
        with full_disk(disk):
            wait_until(lambda: save() == 503, seconds=60)
            # By every process, also by those that were not asked to save.
            wait_until(lambda: not any(is_ready() for _ in range(8)), seconds=25)
            assert save() == 503
            assert json.loads(send_request(port, "/readyz")[1])["problems"] == ["database_full"]
        wait_until(lambda: all(is_ready() for _ in range(8)), seconds=25)
        assert save() == 204


def test_readiness_follows_saves_while_the_database_is_locked(site: Site, port: int) -> None:
    form = "username=somebody&password=wrong"
    with ExitStack() as stack:
        if site.is_postgres:
            connection = stack.enter_context(psycopg.connect(site.database_url))
            connection.execute("LOCK TABLE evaluation_failedlogin, django_session, evaluation_databaseprobe")
        else:
            writer = sqlite3.connect(site.database_url.removeprefix("sqlite:///"), isolation_level=None)
            stack.callback(writer.close)
            writer.execute("BEGIN IMMEDIATE")
        assert send_request(port, "/login/", "POST", form)[0] == 503
        wait_until(lambda: all(send_request(port, "/readyz")[0] == 503 for _ in range(8)), seconds=120)
    wait_until(lambda: all(send_request(port, "/readyz")[0] == 200 for _ in range(8)), seconds=60)
    assert send_request(port, "/login/", "POST", form)[0] == 200
