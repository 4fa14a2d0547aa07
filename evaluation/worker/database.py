"""Database availability (full, busy or away), and table statistics of PostgreSQL after large runs.

Runs are paused while there is still room for their results, so that no paid result is lost."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

from django.conf import settings
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.db.models import Q
from django.db.models.functions import Now

from evaluation.core.errors import DomainError
from evaluation.models import Answer, Context, DatabaseProbe, Question, Run, Score, WorkUnit
from evaluation.storage.versions import NewerDatabase

# Scores.
MIN_SCORES = 1_000
ANALYZED_MODELS = (Question, Answer, Context, Score, WorkUnit)


def analyze_tables(run: Run) -> None:
    """Update PostgreSQL's statistics of the tables that a large run is joined from.

    Autovacuum comes a minute later, or not at all if the run is a small part of a table. Until then the planner may
    expect one score instead of 20,000, and choose joins that take minutes. SQLite is not affected."""
    sample = Score.objects.filter(run=run).order_by()[:MIN_SCORES].values_list("pk", flat=True)
    if connection.vendor != "postgresql" or len(sample) < MIN_SCORES:
        return
    names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in ANALYZED_MODELS)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {names}")


# The reason of runs paused for lack of space.
STORAGE_FULL = "storage_full"
READ_ONLY = "database_read_only"
FULL = "database_full"
LOCKED = "database_locked"
AWAY = "database_away"
REPLACED = "database_replaced"
DAMAGED = "database_damaged"
NEWER = "database_newer"
_MEGABYTE = 1_000_000
_BY_SQLSTATE = {
    "25006": READ_ONLY,
    "53100": FULL,
    # Too many connections.
    "53300": AWAY,
    # The lock_timeout was exceeded.
    "55P03": LOCKED,
    # The statement_timeout was exceeded.
    "57014": LOCKED,
    "57P01": AWAY,
    "57P02": AWAY,
    "57P03": AWAY,
}
# By the beginning of the error's name; the first match counts.
_BY_SQLITE = {
    "SQLITE_READONLY_DBMOVED": REPLACED,
    "SQLITE_READONLY": READ_ONLY,
    "SQLITE_FULL": FULL,
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_CANTOPEN": AWAY,
    "SQLITE_IOERR": DAMAGED,
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_NOTADB": DAMAGED,
}
# How long a request waits for locked rows or tables.
LOCK_SECONDS = 10
TRIAL_SECONDS = 10
# More than a save of a reviewer writes.
PROBE_BYTES = 128 * 1024


def unavailable_reason(error: BaseException) -> str:
    """The reason code if the error means that the database is unavailable; empty for other errors."""
    if isinstance(error, NewerDatabase):
        return NEWER
    driver = error.__cause__
    if name := getattr(driver, "sqlite_errorname", None):
        return next((reason for prefix, reason in _BY_SQLITE.items() if name.startswith(prefix)), "")
    state = getattr(driver, "sqlstate", None)
    # Without a connection there is no state.
    if state is None:
        return AWAY if isinstance(error, (OperationalError, InterfaceError)) else ""
    return AWAY if state.startswith("08") else _BY_SQLSTATE.get(state, "")


def unwritable_reason(error: BaseException) -> str:
    """The reason code if the error means that the database refuses writes; empty for other errors."""
    reason = unavailable_reason(error)
    return reason if reason in {READ_ONLY, FULL} else ""


def probe_write(interval: float = 0) -> None:
    """Write a probe row; with ``interval``, only if no process did within so many seconds.

    The new row is inserted before the old one is deleted, so that the database needs as much free space as for a save.

    :raises DatabaseError: if the write fails; see :func:`unavailable_reason`."""
    recent = Q(written_at__gt=Now() - timedelta(seconds=interval), written_at__lte=Now())
    if interval and DatabaseProbe.objects.filter(recent).exists():
        return
    # In a transaction, a writer who waits for a lock learns who holds it.
    with transaction.atomic():
        probe = DatabaseProbe.objects.create(written_at=Now(), content=os.urandom(PROBE_BYTES))
        DatabaseProbe.objects.exclude(pk=probe.pk).delete()


def create_sqlite_file(connection: BaseDatabaseWrapper) -> None:
    """Create the file of a new SQLite database, readable by its owner only; its companion files inherit that. Leaves an
    existing file alone."""
    if connection.vendor == "sqlite" and not cast(DatabaseWrapper, connection).is_in_memory_db():
        # If the file exists, or the folder is read-only or missing, SQLite reports it.
        with suppress(OSError):
            flags = os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            os.close(os.open(connection.settings_dict["NAME"], flags, 0o600))
            with closing(sqlite3.connect(connection.settings_dict["NAME"])) as database:
                mark_sqlite_file(database)


def mark_sqlite_file(database: sqlite3.Connection) -> None:
    """Give the file a random mark, by which it is told from other databases (``config/sqlite3/file.py``)."""
    database.execute(f"PRAGMA application_id = {1 + secrets.randbelow(2**31 - 1)}")


@contextmanager
def claimed(*parts: str) -> Iterator[Callable[[], None]]:
    """Reserve parts of ``serve`` (``web``, ``worker``) on the database for this process. The function that is given
    reserves them again after a restart of PostgreSQL.

    :raises DomainError: ``already_served`` if another process has one of them."""
    # PostgreSQL reserves for a session; the default connection is closed now and then.
    session = connections.create_connection(DEFAULT_DB_ALIAS)

    def claim() -> None:
        for part in parts:
            if holder := cast(Any, session).claim(part):
                raise DomainError("already_served", process=holder)

    try:
        claim()
        yield claim
    finally:
        session.close()


def checkpoint_wal() -> str:
    """Write SQLite's log into the database file, so that a copy of the file is complete; the error, or empty."""
    if connection.vendor != "sqlite":
        return ""
    try:
        with connection.cursor() as cursor:
            busy = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except DatabaseError as error:
        return str(error)
    finally:
        connection.close()
    return "another process still uses it" if busy else ""


def set_statement_timeouts() -> None:
    """Set PostgreSQL's lock and statement time-outs for this process; call before it connects. Not for workers, whose
    statements may be long. Behind a pooler, set them on the role instead."""
    options = connection.settings_dict["OPTIONS"]
    session_options_persist = "prepare_threshold" in options and "lock_timeout" not in options["options"]
    if connection.vendor == "postgresql" and session_options_persist:
        statement_seconds = settings.CONCORD_STATEMENT_SECONDS
        options["options"] += f" -c lock_timeout={LOCK_SECONDS}s -c statement_timeout={statement_seconds}s"


def is_short_of_space() -> bool:
    """Return whether the disk of an SQLite database has less free space than ``CONCORD_MIN_FREE_DISK_MB``. Unknown for
    database servers."""
    file = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor != "sqlite" or not settings.CONCORD_MIN_FREE_DISK_MB or not file.is_file():
        # An in-memory database has no file.
        return False
    free = shutil.disk_usage(file.parent).free
    return free < settings.CONCORD_MIN_FREE_DISK_MB * _MEGABYTE


T = TypeVar("T")
log = logging.getLogger("concord.work")


def retry_on_db_error(action: Callable[[], T], *, seconds: float = 90.0) -> T:
    """Run an idempotent action, and retry it while the database cannot be reached or written.

    Only for whole transactions: inside one, the error is raised at once.

    :raises OperationalError: if the database stays away longer than ``seconds``.
    :raises DomainError: ``database_read_only`` or ``database_full`` if it refuses writes for so long."""
    end = time.monotonic() + seconds
    pause = 0.1
    while True:
        try:
            return action()
        except (OperationalError, InterfaceError, InternalError) as error:
            reason = unwritable_reason(error)
            if connection.in_atomic_block or (isinstance(error, InternalError) and not reason):
                raise
            if time.monotonic() + pause > end:
                if reason:
                    raise DomainError(reason) from error
                raise
            log.warning("database unavailable, trying again in %.1f s: %s", pause, error)
            connection.close()
            time.sleep(pause)
            pause = min(pause * 2, 5.0)
