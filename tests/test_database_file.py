"""An SQLite log is opened only with the file that it belongs to.

Each :class:`DatabaseFile` stands for a process that opens the database for the first time."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from config.sqlite3.file import DatabaseFile, claim
from evaluation.worker.database import create_sqlite_file, mark_sqlite_file

ROWS = 500


def make_database(path: Path, text: str) -> Path:
    """Make a database with a mark and rows that fill many pages, without a log."""
    with closing(sqlite3.connect(path)) as database:
        mark_sqlite_file(database)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, text TEXT)")
        database.execute("CREATE INDEX by_text ON item (text)")
        database.executemany("INSERT INTO item (text) VALUES (?)", [(f"{text} {number}",) for number in range(ROWS)])
        database.commit()
    assert not Path(f"{path}-wal").exists()
    return path


@contextmanager
def crash_in_use(path: Path) -> Iterator[None]:
    """Leave the log of a killed process beside the file."""
    DatabaseFile(str(path))
    program = (
        "import os, sqlite3, sys\ndatabase = sqlite3.connect(sys.argv[1])\n"
        "database.execute(\"UPDATE item SET text = 'changed ' || text\")\ndatabase.commit()\nos._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    assert Path(f"{path}-wal").stat().st_size > 0
    yield


def rows(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [text for (text,) in database.execute("SELECT text FROM item ORDER BY id")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_database(tmp_path / "site.sqlite3", "first")


@pytest.mark.parametrize("content", ["another database", "a copy of the database"])
@pytest.mark.parametrize("how", ["renamed", "overwritten"])
def test_log_of_another_file_is_refused(path: Path, tmp_path: Path, content: str, how: str) -> None:
    other = tmp_path / "other.sqlite3"
    if content == "another database":
        make_database(other, "second")
    else:
        shutil.copy(path, other)
        if how == "overwritten":
            pytest.skip("the bytes of a plain copy tell nothing")
    expected = rows(other)
    with crash_in_use(path):
        if how == "renamed":
            other.rename(path)
        else:
            shutil.copyfile(other, path)
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="-wal belongs to an earlier database file") as raised:
                DatabaseFile(str(path))
            assert raised.value.sqlite_errorname == "SQLITE_READONLY_DBMOVED"
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink()
    DatabaseFile(str(path))
    assert rows(path) == expected


def test_killed_process_leaves_a_log_that_is_opened(path: Path) -> None:
    with crash_in_use(path):
        DatabaseFile(str(path)).require_unchanged()
    assert rows(path)[0] == "changed first 0"


def test_folder_copied_after_a_crash_is_opened_with_its_log(path: Path, tmp_path: Path) -> None:
    with crash_in_use(path):
        folder = tmp_path / "copy"
        folder.mkdir()
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, folder)
    DatabaseFile(str(folder / path.name))
    assert rows(folder / path.name)[0] == "changed first 0"
    make_database(tmp_path / "other.sqlite3", "second").rename(path)
    with pytest.raises(sqlite3.OperationalError, match="belongs to an earlier database file"):
        DatabaseFile(str(path))


def test_file_exchanged_while_nobody_used_it_is_accepted_and_owns_its_log(path: Path, tmp_path: Path) -> None:
    DatabaseFile(str(path))
    make_database(tmp_path / "other.sqlite3", "second").rename(path)
    with crash_in_use(path):
        DatabaseFile(str(path))
    assert rows(path)[0] == "changed second 0"


def test_damaged_file_in_place_of_another_is_refused(path: Path, tmp_path: Path) -> None:
    DatabaseFile(str(path))
    damaged = make_database(tmp_path / "other.sqlite3", "second")
    content = bytearray(damaged.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    damaged.write_bytes(content)
    damaged.rename(path)
    for _ in range(2):
        with pytest.raises(sqlite3.DatabaseError, match=r"damaged|malformed"):
            DatabaseFile(str(path))


def test_exchange_is_refused_while_serve_runs(path: Path, tmp_path: Path) -> None:
    DatabaseFile(str(path))
    program = "import sys\nfrom config.sqlite3.file import claim\nprint(claim(sys.argv[1], 'web'), flush=True)\ninput()"
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "\n"
        make_database(tmp_path / "other.sqlite3", "second").rename(path)
        message = rf"was replaced while process {server.pid} \(.* was using it"
        with pytest.raises(sqlite3.OperationalError, match=message):
            DatabaseFile(str(path))
        assert claim(str(path), "web").startswith(f"process {server.pid} (")
        assert claim(str(path), "worker") == ""
        server.communicate("\n")
    assert claim(str(path), "web") == ""
    DatabaseFile(str(path))  # its own claim does not count


def test_overwritten_file_is_noticed_and_the_log_is_not_written_into_it(path: Path, tmp_path: Path) -> None:
    other = make_database(tmp_path / "other.sqlite3", "second")
    file = DatabaseFile(str(path))
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE item SET text = 'changed ' || text")
        database.commit()
        shutil.copyfile(other, path)
        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="was replaced while it was in use"):
                file.require_unchanged()
    assert path.read_bytes() == other.read_bytes()
    with pytest.raises(sqlite3.OperationalError, match="belongs to an earlier database file"):
        DatabaseFile(str(path))


def test_each_new_file_has_a_mark_of_its_own(tmp_path: Path) -> None:
    marks = {bytes(4)}
    for name in ("a", "b"):
        connection: Any = Mock(vendor="sqlite", settings_dict={"NAME": str(tmp_path / name)})
        connection.is_in_memory_db.return_value = False
        create_sqlite_file(connection)
        marks.add((tmp_path / name).read_bytes()[68:72])
    assert len(marks) == 3
    assert (tmp_path / "a").stat().st_mode & 0o077 == 0
