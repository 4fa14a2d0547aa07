"""SQLite backend whose writers take turns and which notices a replaced database file.

SQLite allows one writer at a time. A waiting writer retries after 1, 2, 5, ... 100 ms, so the writer that just finished
often gets in again before the others wake up. Here the next writer polls a lock file beside the database every
millisecond, and only the holder of that lock waits for SQLite. It releases the lock when its transaction has begun, or
when its process ends. SQLite's own retries still cover writers that do not use the lock (a shell, a backup).

Writes to a deleted or replaced file would be lost without an error, so each statement checks the file first
(``file.py``). Only ``migrate`` creates a file: a missing database is an error."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base

from config.sqlite3.file import DatabaseFile, claim, database_file, sqlite_error
from evaluation.storage.versions import refuse_newer_database

# Shorter waits for the lock are not subtracted from SQLite's own time-out.
NEGLIGIBLE_WAIT_SECONDS = 1.0


class Cursor(base.SQLiteCursorWrapper):
    """Cursor that names the process which kept it from the database, also for a statement outside a transaction."""

    file: DatabaseFile
    timeout: float

    def execute(self, query: str, params: Any = None) -> Any:
        """Execute a statement.

        :raises sqlite3.OperationalError: as SQLite; naming the writer if the database stayed locked."""
        with self._naming_writer():
            return super().execute(query, params)

    def executemany(self, query: str, param_list: Any) -> Any:
        """Execute a statement with each of the parameters; errors as :meth:`execute`."""
        with self._naming_writer():
            return super().executemany(query, param_list)

    @contextmanager
    def _naming_writer(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                raise self.file.busy_error(self.timeout, self.file.writer()) from error
            raise


class DatabaseWrapper(base.DatabaseWrapper):
    """Connection whose write transactions begin one after another. The option ``timeout`` limits the waits for the lock
    and for the database together."""

    # None for a database in memory.
    _file: DatabaseFile | None = None
    _is_recorded_writer = False

    @property
    def _timeout(self) -> float:
        # Python's own limit, for a connection without the option.
        return float(self.settings_dict["OPTIONS"].get("timeout", 5.0))

    def claim(self, part: str) -> str:
        """Reserve a part of ``serve`` on this database for this process; another process that runs it, in words."""
        return "" if self.is_in_memory_db() else claim(str(self.settings_dict["NAME"]), part)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect to the file that this process opened first.

        :raises sqlite3.DatabaseError: if it is missing or was replaced, or the log beside it is another file's."""
        if self.is_in_memory_db():
            return super().get_new_connection(conn_params)
        path = str(self.settings_dict["NAME"])
        if not Path(path).exists():
            raise sqlite_error("SQLITE_CANTOPEN", f"the database {path} does not exist; run migrate to create it")
        self._file = database_file(path)
        self._file.require_unchanged()
        return super().get_new_connection(conn_params)

    def init_connection_state(self) -> None:
        """Prepare the connection, and refuse a database of newer code."""
        super().init_connection_state()
        refuse_newer_database(self)

    def create_cursor(self, name: str | None = None) -> Any:
        """Return a cursor, after checking that the file is still the one that was opened."""
        if self._file is None:
            return super().create_cursor(name)
        self._file.require_unchanged()
        cursor = self.connection.cursor(factory=Cursor)
        cursor.file, cursor.timeout = self._file, self._timeout
        return cursor

    def _start_transaction_under_autocommit(self) -> None:
        begin = super()._start_transaction_under_autocommit  # type: ignore[misc]  # left out of the stubs
        if self._file is None:
            begin()
            return
        started = time.monotonic()
        timeout = self._timeout
        with self.wrap_database_errors, self._file.writers_turn(timeout):
            waited = time.monotonic() - started
            if waited >= NEGLIGIBLE_WAIT_SECONDS:
                self._set_busy_timeout(max(0.0, timeout - waited))
            try:
                begin()
            finally:
                if waited >= NEGLIGIBLE_WAIT_SECONDS:
                    self._set_busy_timeout(timeout)
            self._file.record_writer()
            self._is_recorded_writer = True

    def _set_autocommit(self, autocommit: bool) -> None:
        super()._set_autocommit(autocommit)  # type: ignore[misc]  # left out of the stubs
        # A transaction has ended.
        self._clear_writer()

    def _close(self) -> None:
        super()._close()  # type: ignore[misc]  # left out of the stubs
        self._clear_writer()

    def _clear_writer(self) -> None:
        if self._is_recorded_writer and self._file is not None:
            self._file.clear_writer()
            self._is_recorded_writer = False

    def _set_busy_timeout(self, seconds: float) -> None:
        self.connection.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
