"""Django's SQLite, whose writers take turns and whose file is the one that was opened.

SQLite lets one write at a time, and a writer that finds another asks again after 1, 2, 5, ... 100 ms: while several
sleep, whoever has just finished writes again. Here the next writer asks every millisecond for a lock on a file beside
the database, so that no more than one at a time asks SQLite. It holds that lock only until its transaction has begun,
and loses it with its process. Writers that know of no turns (a shell, a backup) are waited for as ever.

A file that was deleted or replaced under an open connection would take writes that nobody sees again: each statement
looks first. Nothing but ``migrate`` makes a file, so that a missing database is told and not begun anew.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base

NOTICED = 1.0  # seconds; a shorter wait in line is not taken off SQLite's timeout
LOOK_SECONDS = 0.001  # between two looks whether it is one's turn


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection whose transactions begin in turn. ``timeout`` of its options is for line and database together."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A connection to a file that is there.

        It is never opened here: closing it again would take away every lock that SQLite holds on it for this process
        (POSIX locks belong to the process, not to the opened file), and another process that closes its last
        connection would then delete the log from under those that still write.
        """
        if not self.is_in_memory_db() and not Path(self.settings_dict["NAME"]).exists():
            raise _error("SQLITE_CANTOPEN", f"there is no database {self.settings_dict['NAME']}; migrate makes one")
        made = super().get_new_connection(conn_params)
        self._opened = self._file()
        return made

    def create_cursor(self, name: str | None = None) -> Any:
        """A cursor, where the file is still the one that was opened."""
        if self._file() != self._opened:
            told = f"the file {self.settings_dict['NAME']} was deleted or replaced while it was in use"
            raise _error("SQLITE_READONLY_DBMOVED", told)
        return super().create_cursor(name)

    def _file(self) -> tuple[int, int] | None:
        if self.is_in_memory_db():
            return None
        try:
            told = os.stat(self.settings_dict["NAME"])
        except OSError:
            return (0, 0)
        return told.st_dev, told.st_ino

    def _start_transaction_under_autocommit(self) -> None:
        came = time.monotonic()
        with self._turn():
            begin = super()._start_transaction_under_autocommit  # type: ignore[misc]  # left out of the stubs
            if (waited := time.monotonic() - came) < NOTICED:
                begin()
                return
            timeout = self.settings_dict["OPTIONS"]["timeout"]
            self._wait_at_most(max(0.0, timeout - waited))
            try:
                begin()
            finally:
                self._wait_at_most(timeout)

    def _wait_at_most(self, seconds: float) -> None:
        self.connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Alone with the question whether one may write. Where the file cannot be opened (in a folder that is
        read-only), writers meet at SQLite itself."""
        if self.is_in_memory_db():
            yield
            return
        try:
            line = os.open(f"{self.settings_dict['NAME']}-turn", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield
            return
        try:
            self._stand_in(line)
            yield
        finally:
            os.close(line)

    def _stand_in(self, line: int) -> None:
        """Wait for one's turn, as long as for the database at most: who has it may be frozen."""
        timeout = self.settings_dict["OPTIONS"]["timeout"]
        end = time.monotonic() + timeout
        while True:
            try:
                return fcntl.flock(line, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < end:
                    time.sleep(LOOK_SECONDS)
                    continue
            told = f"database is locked: the line of writers has not moved for {timeout} s; somebody holds -turn"
            with self.wrap_database_errors:
                raise _error("SQLITE_BUSY", told)


def _error(name: str, text: str) -> sqlite3.OperationalError:
    """An error as SQLite itself reports one."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname = name
    return error
