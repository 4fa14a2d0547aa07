"""A database that is away, deleted or locked, with real processes: 503 in bounded time with a code, and back without a
restart; `healthcheck` says so without a traceback."""

from __future__ import annotations

import fcntl
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.faults.site import Site, free_port
from tests.faults.test_restarts import answers
from tests.faults.test_watchdog import wait_until

pytestmark = [pytest.mark.faults]
BOUND_SECONDS = 25.0  # SQLite's timeout and a bit


def asked(port: int, path: str, method: str = "GET", body: str = "") -> tuple[int, str, float]:
    """Status, text and seconds of an answer to somebody whose cookie names a session."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    csrf = "c" * 32
    headers = {"Cookie": f"sessionid={'x' * 32}; csrftoken={csrf}", "X-CSRFToken": csrf}
    if body:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    started = time.monotonic()
    connection.request(method, path, body or None, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), time.monotonic() - started


@contextmanager
def away(site: Site) -> Iterator[None]:
    """SQLite: the file is gone. PostgreSQL: the database has another name, and who was connected is not any more."""
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
def locked(site: Site) -> Iterator[None]:
    """SQLite: a frozen writer has the turn. PostgreSQL: somebody has the table of sessions for himself."""
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
    """Where the site's web server listens."""
    site.start("manage.py", "serve", "--no-worker", "--port", str(found := free_port()))
    wait_until(lambda: answers(found))
    return found


def test_a_database_that_is_away_is_told_at_once_and_taken_up_again(site: Site, port: int) -> None:
    assert asked(port, "/readyz")[0] == 200
    with away(site):
        for _ in range(4):  # by every process, also by those that had opened it
            status, page, seconds = asked(port, "/question-sets/")
            assert (status, "No such" in page, seconds < 6) == (503, False, True)
            status, said, seconds = asked(port, "/api/v1/runs/")
            assert (status, seconds < 6) == (503, True)
            assert json.loads(said)["code"] in {"database_away", "database_replaced"}
        assert asked(port, "/healthz")[0] == 200
        wait_until(lambda: asked(port, "/readyz")[0] == 503, seconds=15)
        said = site.manage("healthcheck", check=False)
        assert ("database_away" in said, "Traceback" in said) == (True, False)
    assert asked(port, "/api/v1/runs/")[0] == 401  # nobody's session, looked up again
    wait_until(lambda: asked(port, "/readyz")[0] == 200, seconds=15)


def test_who_waits_for_a_locked_database_is_told_in_bounded_time(site: Site, port: int) -> None:
    form = "username=somebody&password=wrong"
    with locked(site):
        status, page, seconds = asked(port, "/login/", "POST", form)
        assert (status, "busy for too long" in page) == (503, True)
        assert 5 < seconds < BOUND_SECONDS
        assert asked(port, "/healthz")[2] < 2
    assert asked(port, "/login/", "POST", form)[0] == 200


def test_a_deleted_file_is_noticed_by_the_next_write_and_no_empty_one_takes_its_place(site: Site, port: int) -> None:
    if site.is_postgres:
        pytest.skip("a server's files are its own")
    form = "username=somebody&password=wrong"
    assert asked(port, "/login/", "POST", form)[0] == 200
    file = Path(site.database_url.removeprefix("sqlite:///"))
    file.unlink()
    found: list[Any] = [asked(port, "/login/", "POST", form)[0] for _ in range(6)]
    assert found == [503] * 6
    assert not file.exists()
