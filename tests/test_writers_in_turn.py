"""SQLite's writers wait in one line, none longer than the timeout, and a reader never."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.db import OperationalError

from config.environment import database_settings
from config.sqlite3.base import DatabaseWrapper
from evaluation.worker.database import AWAY, LOCKED, REPLACED, unavailable_reason

# Uses connections of its own, which pytest would refuse as well.
pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
TIMEOUT = 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/site.sqlite3")
    (tmp_path / "site.sqlite3").touch()
    with connected(tmp_path) as made, made.cursor() as cursor:
        cursor.execute("CREATE TABLE counter (value integer)")
        cursor.execute("INSERT INTO counter VALUES (0)")
    return tmp_path


@contextmanager
def connected(folder: Path) -> Iterator[DatabaseWrapper]:
    """A connection as the site makes one, with a short timeout."""
    settings = database_settings(folder)
    settings["OPTIONS"]["timeout"] = TIMEOUT
    rest = {"TIME_ZONE": None, "AUTOCOMMIT": True, "CONN_HEALTH_CHECKS": False, "ATOMIC_REQUESTS": False}
    with closing(DatabaseWrapper(rest | settings, "here")) as one:
        one.inc_thread_sharing()
        one.ensure_connection()
        yield one


@contextmanager
def writing(one: DatabaseWrapper) -> Iterator[None]:
    """A transaction of this connection."""
    one.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    yield
    one.commit()
    one.set_autocommit(True)


def add_one(folder: Path, times: int) -> None:
    """Read and write in one transaction, so many times."""
    with connected(folder) as one, one.cursor() as cursor:
        for _ in range(times):
            with writing(one):
                value = cursor.execute("SELECT value FROM counter").fetchone()[0]
                cursor.execute("UPDATE counter SET value = %s", [value + 1])


def test_writers_at_once_lose_nothing(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(add_one, folder, 25) for _ in range(8)]:
            done.result()
    with connected(folder) as one, one.cursor() as cursor:
        assert cursor.execute("SELECT value FROM counter").fetchone()[0] == 200


def test_who_writes_is_out_of_the_line_and_who_reads_never_in_it(folder: Path) -> None:
    with connected(folder) as one, connected(folder) as other, writing(one):
        line = os.open(folder / "site.sqlite3-turn", os.O_RDONLY)
        fcntl.flock(line, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where somebody is first in line
        with other.cursor() as cursor:
            assert cursor.execute("SELECT value FROM counter").fetchone()[0] == 0
        os.close(line)


def test_nobody_waits_longer_for_having_stood_in_line(folder: Path) -> None:
    def refused(_: int) -> float:
        started = time.monotonic()
        with connected(folder) as one, pytest.raises(OperationalError, match="locked"), writing(one):
            pass
        return time.monotonic() - started

    with closing(sqlite3.connect(folder / "site.sqlite3", isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(4) as pool:
            waited = list(pool.map(refused, range(4)))
    assert max(waited) < 2 * TIMEOUT  # one after the other they would have waited up to 4 timeouts


def test_a_line_that_does_not_move_is_left_after_the_timeout(folder: Path) -> None:
    line = os.open(folder / "site.sqlite3-turn", os.O_RDONLY | os.O_CREAT)
    fcntl.flock(line, fcntl.LOCK_EX)  # as a frozen process would hold it
    started = time.monotonic()
    with connected(folder) as one, pytest.raises(OperationalError, match="line of writers") as raised, writing(one):
        pass
    assert TIMEOUT <= time.monotonic() - started < TIMEOUT + 1
    assert unavailable_reason(raised.value) == LOCKED
    os.close(line)
    with connected(folder) as one, writing(one):
        pass


def test_a_file_that_was_deleted_or_replaced_takes_nothing_more(folder: Path) -> None:
    file = folder / "site.sqlite3"
    with connected(folder) as one, one.cursor() as cursor:
        cursor.execute("SELECT value FROM counter")
        file.rename(folder / "elsewhere")
        with pytest.raises(OperationalError, match="was deleted or replaced") as raised:
            one.cursor()
        assert unavailable_reason(raised.value) == REPLACED
        file.touch()
        with pytest.raises(OperationalError, match="was deleted or replaced"), writing(one):
            pass


def test_a_file_that_is_not_there_is_told_and_not_made(folder: Path) -> None:
    (folder / "site.sqlite3").unlink()
    with pytest.raises(OperationalError, match="there is no database") as raised, connected(folder):
        pass
    assert unavailable_reason(raised.value) == AWAY
    assert not (folder / "site.sqlite3").exists()


def test_a_database_in_memory_has_no_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DATABASE_URL", "sqlite://:memory:")
    with connected(folder) as one, writing(one):
        assert [file.name for file in folder.glob("*memory*")] == []
