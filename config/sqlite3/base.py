"""SQLite backend whose writers take turns and which notices a replaced database file.

SQLite allows one writer at a time. A waiting writer retries after 1, 2, 5, ... 100 ms, so the writer that just finished
often gets in again before the others wake up. Here the next writer polls a lock file beside the database every
millisecond, and only the holder of that lock waits for SQLite. It releases the lock when its transaction has begun, or
when its process ends. SQLite's own retries still cover writers that do not use the lock (a shell, a backup).

Writes to a deleted or replaced file would be lost without an error, so each statement checks the file first. Only
``migrate`` creates a file: a missing database is an error."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base

# Shorter waits for the lock are not subtracted from SQLite's own time-out.
NEGLIGIBLE_WAIT_SECONDS = 1.0
# Pause between two attempts to take the lock.
POLL_SECONDS = 0.001


class DatabaseWrapper(base.DatabaseWrapper):
    """Connection whose write transactions begin one after another. The option ``timeout`` limits the waits for the lock
    and for the database together."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect to an existing file.

        The file is never opened directly: closing it would drop every lock that SQLite holds on it for this process,
        because POSIX locks belong to the process. Another process that closes its last connection would then delete the
        WAL while this one still writes."""
        if not self.is_in_memory_db() and not Path(self.settings_dict["NAME"]).exists():
            raise _sqlite_error(
                "SQLITE_CANTOPEN", f"there is no database {self.settings_dict['NAME']}; migrate makes one"
            )
        connection = super().get_new_connection(conn_params)
        self._opened_file = self._file_id()
        return connection

    def create_cursor(self, name: str | None = None) -> Any:
        """Return a cursor, after checking that the file is still the one that was opened."""
        if self._file_id() != self._opened_file:
            message = f"the file {self.settings_dict['NAME']} was deleted or replaced while it was in use"
            raise _sqlite_error("SQLITE_READONLY_DBMOVED", message)
        return super().create_cursor(name)

    def _file_id(self) -> tuple[int, int] | None:
        if self.is_in_memory_db():
            return None
        try:
            status = os.stat(self.settings_dict["NAME"])
        except OSError:
            return (0, 0)
        return status.st_dev, status.st_ino

    def _start_transaction_under_autocommit(self) -> None:
        started = time.monotonic()
        with self._writer_lock():
            begin = super()._start_transaction_under_autocommit  # type: ignore[misc]  # left out of the stubs
            if (waited := time.monotonic() - started) < NEGLIGIBLE_WAIT_SECONDS:
                begin()
                return
            timeout = self.settings_dict["OPTIONS"]["timeout"]
            self._set_busy_timeout(max(0.0, timeout - waited))
            try:
                begin()
            finally:
                self._set_busy_timeout(timeout)

    def _set_busy_timeout(self, seconds: float) -> None:
        self.connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")

    @contextmanager
    def _writer_lock(self) -> Iterator[None]:
        """Hold the lock file of the next writer. A read-only folder has no lock file; its writers compete for SQLite
        itself."""
        if self.is_in_memory_db():
            yield
            return
        try:
            lock = os.open(f"{self.settings_dict['NAME']}-turn", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            yield
            return
        try:
            self._acquire_lock(lock)
            yield
        finally:
            os.close(lock)

    def _acquire_lock(self, lock: int) -> None:
        """Wait for the lock, at most for the database time-out: the process that holds it may hang."""
        timeout = self.settings_dict["OPTIONS"]["timeout"]
        deadline = time.monotonic() + timeout
        while True:
            try:
                return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(POLL_SECONDS)
                    continue
            message = f"database is locked: the line of writers has not moved for {timeout} s; somebody holds -turn"
            with self.wrap_database_errors:
                raise _sqlite_error("SQLITE_BUSY", message)


def _sqlite_error(name: str, text: str) -> sqlite3.OperationalError:
    """Build an error as SQLite reports it."""
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname = name
    return error
