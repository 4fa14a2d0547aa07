"""Waiting out a database that is locked, restarting, takes no writing or has dropped the connection."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connection

from evaluation.core.errors import Refused
from evaluation.work.storage import unwritable

T = TypeVar("T")
log = logging.getLogger("concord.work")


def patiently(action: Callable[[], T], *, seconds: float = 90.0) -> T:
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
