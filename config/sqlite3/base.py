"""Django's SQLite, whose writers take turns.

SQLite lets one write at a time, and a writer that finds another asks again after 1, 2, 5, ... 100 ms: while several
sleep, whoever has just finished writes again. Here the next writer waits at a lock on a file beside the database, where
the system wakes it at once, so that no more than one at a time asks SQLite. It holds that lock only until its
transaction has begun, and loses it with its process. Writers that know of no turns (a shell, a backup) are waited for
as ever.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db.backends.sqlite3 import base

NOTICED = 1.0  # seconds; a shorter wait in line is not taken off SQLite's timeout


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection whose transactions begin in turn. ``timeout`` of its options is for line and database together."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """A connection to a file that only its owner can read; the files that SQLite makes beside it follow it.

        A file that is there is never opened here: closing it again would take away every lock that SQLite holds on it
        for this process (POSIX locks belong to the process, not to the opened file), and another process that closes
        its last connection would then delete the log from under those that still write.
        """
        if not self.is_in_memory_db():
            with suppress(OSError):  # it is there, or the folder is read-only or missing: SQLite says so itself
                made = os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                os.close(os.open(self.settings_dict["NAME"], made, 0o600))
        return super().get_new_connection(conn_params)

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
            fcntl.flock(line, fcntl.LOCK_EX)
            yield
        finally:
            os.close(line)
