"""The database as a part that may be full, busy or away, and what PostgreSQL believes of tables that grew at once.

A run is paused while there is still room for what it writes, so that nothing is paid for and lost.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connection

from evaluation.core.errors import Refused
from evaluation.models import Answer, Context, Question, Run, Score, WorkUnit

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
_MEGABYTE = 1_000_000
_BY_SQLSTATE = {"25006": READ_ONLY, "53100": FULL}


def unwritable(error: BaseException) -> str:
    """Why a statement was refused, where that is because the database takes no writing; empty for other errors."""
    driver = error.__cause__
    name = str(getattr(driver, "sqlite_errorname", None) or "")
    if name.startswith("SQLITE_READONLY"):
        return READ_ONLY
    if name == "SQLITE_FULL":
        return FULL
    return _BY_SQLSTATE.get(str(getattr(driver, "sqlstate", None) or ""), "")


def try_writing() -> None:
    """Ask for the right to write, without changing anything.

    :raises DatabaseError: where there is none; see :func:`unwritable`.
    """
    Run.objects.filter(pk=-1).update(reason="")


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
