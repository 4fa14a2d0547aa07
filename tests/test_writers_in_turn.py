"""SQLite's writers wait in one line, none longer than the timeout, and a reader never."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.db import OperationalError

from config.environment import database_settings
from config.sqlite3.base import DatabaseWrapper
from config.sqlite3.file import NEXT_WRITER, DatabaseFile
from evaluation.worker.database import AWAY, LOCKED, REPLACED, unavailable_reason

# Uses connections of its own, which pytest would refuse as well.
pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
TIMEOUT = 2


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/site.sqlite3")
    (tmp_path / "site.sqlite3").touch()
    with open_database(tmp_path) as database, database.cursor() as cursor:
        cursor.execute("CREATE TABLE counter (value integer)")
        cursor.execute("INSERT INTO counter VALUES (0)")
    return tmp_path


@contextmanager
def open_database(folder: Path) -> Iterator[DatabaseWrapper]:
    """A connection as the site makes one, with a short timeout."""
    settings = database_settings(folder)
    settings["OPTIONS"]["timeout"] = TIMEOUT
    defaults = {"TIME_ZONE": None, "AUTOCOMMIT": True, "CONN_HEALTH_CHECKS": False, "ATOMIC_REQUESTS": False}
    with closing(DatabaseWrapper(defaults | settings, "here")) as database:
        database.inc_thread_sharing()
        database.ensure_connection()
        yield database


@contextmanager
def writing(database: DatabaseWrapper) -> Iterator[None]:
    """A transaction of this connection."""
    database.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    yield
    database.commit()
    database.set_autocommit(True)


def increment_counter(folder: Path, times: int) -> None:
    """Read and write in one transaction, so many times."""
    with open_database(folder) as database, database.cursor() as cursor:
        for _ in range(times):
            with writing(database):
                value = cursor.execute("SELECT value FROM counter").fetchone()[0]
                cursor.execute("UPDATE counter SET value = %s", [value + 1])


def test_concurrent_writers_lose_no_update(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(increment_counter, folder, 25) for _ in range(8)]:
            future.result()
    with open_database(folder) as database, database.cursor() as cursor:
        assert cursor.execute("SELECT value FROM counter").fetchone()[0] == 200


def test_writer_releases_queue_lock_and_reader_never_takes_it(folder: Path) -> None:
    with open_database(folder) as writer, open_database(folder) as reader, writing(writer):
        line = os.open(folder / "site.sqlite3-turn", os.O_RDONLY)
        fcntl.flock(line, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where somebody is first in line
        with reader.cursor() as cursor:
            assert cursor.execute("SELECT value FROM counter").fetchone()[0] == 0
        os.close(line)


def test_queued_writers_wait_no_longer_than_one_timeout(folder: Path) -> None:
    def measure_refusal(_: int) -> float:
        start_time = time.monotonic()
        with open_database(folder) as database, pytest.raises(OperationalError, match="locked"), writing(database):
            pass
        return time.monotonic() - start_time

    with closing(sqlite3.connect(folder / "site.sqlite3", isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(4) as pool:
            wait_seconds = list(pool.map(measure_refusal, range(4)))
    assert max(wait_seconds) < 2 * TIMEOUT  # one after the other they would have waited up to 4 timeouts


def test_blocked_writer_queue_times_out(folder: Path) -> None:
    line = os.open(folder / "site.sqlite3-turn", os.O_RDONLY | os.O_CREAT)
    fcntl.flock(line, fcntl.LOCK_EX)  # as a frozen process would hold it
    start_time = time.monotonic()
    with (
        open_database(folder) as database,
        pytest.raises(OperationalError, match="locked for 2 s by another program") as raised,
        writing(database),
    ):
        pass
    assert TIMEOUT <= time.monotonic() - start_time < TIMEOUT + 1
    assert unavailable_reason(raised.value) == LOCKED
    os.close(line)
    with open_database(folder) as database, writing(database):
        pass


def test_deleted_or_replaced_file_accepts_no_writes(folder: Path) -> None:
    file = folder / "site.sqlite3"
    with open_database(folder) as database, database.cursor() as cursor:
        cursor.execute("SELECT value FROM counter")
        file.rename(folder / "elsewhere")
        with pytest.raises(OperationalError, match="was deleted or moved") as raised:
            database.cursor()
        assert unavailable_reason(raised.value) == REPLACED
        (folder / "elsewhere").rename(file)
        database.cursor()
        file.rename(folder / "elsewhere")
        file.touch()
        with pytest.raises(OperationalError, match="was replaced while it was in use"), writing(database):
            pass
        (folder / "elsewhere").rename(file)  # until the process ends, because it may have seen the other file
        with pytest.raises(OperationalError, match="was replaced while it was in use"):
            database.cursor()


def test_waiting_writer_learns_which_process_writes(folder: Path) -> None:
    holder = rf"locked for 2 s by process {os.getpid()} \(\S+( \S+)?, since 20\d\d-"
    with open_database(folder) as writer, open_database(folder) as waiting:
        with writing(writer), pytest.raises(OperationalError, match=holder) as raised, writing(waiting):
            pass
        assert unavailable_reason(raised.value) == LOCKED
        with writing(writer), pytest.raises(OperationalError, match=holder), waiting.cursor() as cursor:
            cursor.execute("CREATE TABLE other (id integer)")  # outside a transaction
        with writing(writer), pytest.raises(OperationalError, match=holder), waiting.cursor() as cursor:
            cursor.executemany("INSERT INTO counter VALUES (%s)", [(1,), (2,)])
        with closing(sqlite3.connect(folder / "site.sqlite3", isolation_level=None)) as stranger:
            stranger.execute("BEGIN IMMEDIATE")
            with pytest.raises(OperationalError, match="by another program"), writing(waiting):
                pass  # the first writer has ended
        with writing(waiting):
            waiting.close()  # in the middle
        assert DatabaseFile(str(folder / "site.sqlite3")).writer() == ""


def test_waiting_writer_learns_which_process_is_next(folder: Path) -> None:
    program = (
        "import os, signal, sys\nfrom config.sqlite3.file import DatabaseFile\n"
        f"with DatabaseFile({str(folder / 'site.sqlite3')!r}).writers_turn(2): print(os.getpid(), flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process, open_database(folder) as database:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        with pytest.raises(OperationalError, match=rf"locked for 2 s by process {pid} \("), writing(database):
            pass
        process.communicate("\n")
    with open_database(folder) as database, writing(database):
        pass
    assert DatabaseFile(str(folder / "site.sqlite3"))._read_line(NEXT_WRITER).startswith(f"{os.getpid()} ")


def test_missing_file_is_reported_and_not_created(folder: Path) -> None:
    (folder / "site.sqlite3").unlink()
    with pytest.raises(OperationalError, match="does not exist; run migrate") as raised, open_database(folder):
        pass
    assert unavailable_reason(raised.value) == AWAY
    assert not (folder / "site.sqlite3").exists()


def test_in_memory_database_has_no_writer_queue(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DATABASE_URL", "sqlite://:memory:")
    with open_database(folder) as database, writing(database):
        assert [file.name for file in folder.glob("*memory*")] == []
