"""Room for what is written: a run is paused while there is still some, so that nothing is paid for and lost."""

from __future__ import annotations

import shutil
from pathlib import Path

from django.conf import settings
from django.db import connection

STORAGE_FULL = "storage_full"  # the reason such a run is paused with
_MEGABYTE = 1_000_000


def is_short_of_space() -> bool:
    """Whether the disk of an embedded database has less free than ``CONCORD_RESERVE_MEGABYTES``. Of a database server's
    disk nothing is known here."""
    file = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor != "sqlite" or not settings.CONCORD_RESERVE_MEGABYTES or not file.is_file():
        return False  # a database in memory has no file
    free = shutil.disk_usage(file.parent).free
    return free < settings.CONCORD_RESERVE_MEGABYTES * _MEGABYTE
