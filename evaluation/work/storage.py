"""Room for what is written: a run is paused while there is still some, so that nothing is paid for and lost. And what
it means when the database takes no writing at all."""

from __future__ import annotations

import shutil
from pathlib import Path

from django.conf import settings
from django.db import connection

from evaluation.models import Run

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
