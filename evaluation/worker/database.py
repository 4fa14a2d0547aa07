"""The database as a part that may be full, busy or away, and what PostgreSQL believes of tables that grew at once.

A run is paused while there is still room for what it writes, so that nothing is paid for and lost.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar, cast

from django.conf import settings
from django.db import DatabaseError, InterfaceError, InternalError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.db.models import Q
from django.db.models.functions import Now

from evaluation.core.errors import Refused
from evaluation.models import Answer, Context, Question, Run, Score, WorkUnit, WriteTrial

MANY = 1_000  # scores
LOOKED_AT = (Question, Answer, Context, Score, WorkUnit)


def look_again(run: Run) -> None:
    """Have PostgreSQL count anew what a run with many scores is joined from.

    Its own look comes a minute later, or not at all where a run is a small part of a table. Until then it may think
    that a run of 20,000 scores has one, and compare each of them with every other: minutes for one figure. SQLite plans
    by rules that such a run does not mislead.
    """
    some = Score.objects.filter(run=run).order_by()[:MANY].values_list("pk", flat=True)
    if connection.vendor != "postgresql" or len(some) < MANY:
        return
    names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in LOOKED_AT)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {names}")


STORAGE_FULL = "storage_full"  # the reason such a run is paused with
READ_ONLY = "database_read_only"
FULL = "database_full"
LOCKED = "database_locked"
AWAY = "database_away"
REPLACED = "database_replaced"
DAMAGED = "database_damaged"
_MEGABYTE = 1_000_000
_BY_SQLSTATE = {
    "25006": READ_ONLY,
    "53100": FULL,
    "53300": AWAY,  # too many connections
    "55P03": LOCKED,  # lock_timeout
    "57014": LOCKED,  # statement_timeout
    "57P01": AWAY,
    "57P02": AWAY,
    "57P03": AWAY,
}
_BY_SQLITE = {  # by how the name of the error begins; the first that fits
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
LOCK_SECONDS = 10  # for which a request waits for rows or tables that somebody else has locked
TRIAL_SECONDS = 10


def unavailable(error: BaseException) -> str:
    """Why the database cannot be used at present; empty for errors that are no matter of the database's state."""
    driver = error.__cause__
    if name := getattr(driver, "sqlite_errorname", None):
        return next((why for begin, why in _BY_SQLITE.items() if name.startswith(begin)), "")
    state = getattr(driver, "sqlstate", None)
    if state is None:  # there is no connection to hear one over
        return AWAY if isinstance(error, (OperationalError, InterfaceError)) else ""
    return AWAY if state.startswith("08") else _BY_SQLSTATE.get(state, "")


def unwritable(error: BaseException) -> str:
    """Why a statement was refused, where that is because the database takes no writing; empty for other errors."""
    why = unavailable(error)
    return why if why in {READ_ONLY, FULL} else ""


def try_writing(every: float = 0) -> None:
    """Write a row; with ``every``, only where nobody did within so many seconds.

    :raises DatabaseError: where that cannot be done; see :func:`unavailable`.
    """
    lately = Q(written_at__gt=Now() - timedelta(seconds=every), written_at__lte=Now())
    if every and WriteTrial.objects.filter(lately, pk=1).exists():
        return
    due = WriteTrial.objects.filter(pk=1)
    if not (due.exclude(lately) if every else due).update(written_at=Now()):
        WriteTrial.objects.get_or_create(pk=1, defaults={"written_at": Now()})


def make_file(connection: BaseDatabaseWrapper) -> None:
    """Make the empty file of a new SQLite database, for its owner alone; the files beside it follow it. One that is
    there is left alone."""
    if connection.vendor == "sqlite" and not cast(DatabaseWrapper, connection).is_in_memory_db():
        with suppress(OSError):  # it is there, or the folder is read-only or missing: SQLite says so itself
            made = os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            os.close(os.open(connection.settings_dict["NAME"], made, 0o600))


def write_log_back() -> str:
    """Bring all that SQLite's log holds into the file, so that a copy of the file alone is whole; why that could not be
    done, empty where it was."""
    if connection.vendor != "sqlite":
        return ""
    try:
        with connection.cursor() as cursor:
            busy = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except DatabaseError as error:
        return str(error)
    finally:
        connection.close()
    return "somebody else still uses it" if busy else ""


def limit_waits() -> None:
    """Have no statement of this process on PostgreSQL wait or work without end; to be called before it connects. Not
    for workers, whose statements may be long. A pooler keeps nothing with a connection: there the role needs limits."""
    options = connection.settings_dict["OPTIONS"]
    kept = "prepare_threshold" in options and "lock_timeout" not in options["options"]
    if connection.vendor == "postgresql" and kept:
        lasting = settings.CONCORD_STATEMENT_SECONDS
        options["options"] += f" -c lock_timeout={LOCK_SECONDS}s -c statement_timeout={lasting}s"


def is_short_of_space() -> bool:
    """Whether the disk of an embedded database has less free than ``CONCORD_RESERVE_MEGABYTES``. Of a database server's
    disk nothing is known here."""
    file = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor != "sqlite" or not settings.CONCORD_RESERVE_MEGABYTES or not file.is_file():
        return False  # a database in memory has no file
    free = shutil.disk_usage(file.parent).free
    return free < settings.CONCORD_RESERVE_MEGABYTES * _MEGABYTE


T = TypeVar("T")
log = logging.getLogger("concord.work")


def retry_on_db_error(action: Callable[[], T], *, seconds: float = 90.0) -> T:
    """Run an action that is safe to repeat, again and again while the database cannot be reached or written.

    Only for whole transactions: inside one, the error is passed on at once.

    :raises OperationalError: when the database stays away longer than ``seconds``.
    :raises Refused: ``database_read_only`` or ``database_full`` when it is there and takes no writing for so long.
    """
    end = time.monotonic() + seconds
    pause = 0.1
    while True:
        try:
            return action()
        except (OperationalError, InterfaceError, InternalError) as error:
            why = unwritable(error)
            if connection.in_atomic_block or (isinstance(error, InternalError) and not why):
                raise
            if time.monotonic() + pause > end:
                if why:
                    raise Refused(why) from error
                raise
            log.warning("database unavailable, trying again in %.1f s: %s", pause, error)
            connection.close()
            time.sleep(pause)
            pause = min(pause * 2, 5.0)
