"""Waiting out a database that is locked, restarting or has dropped the connection."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

T = TypeVar("T")
log = logging.getLogger("concord.work")


def patiently(action: Callable[[], T], *, seconds: float = 90.0) -> T:
    """Run an action that is safe to repeat, again and again while the database cannot be reached or written.

    Only for whole transactions: inside one, the error is passed on at once.

    :raises OperationalError: when the database stays away longer than ``seconds``.
    """
    end = time.monotonic() + seconds
    pause = 0.1
    while True:
        try:
            return action()
        except (OperationalError, InterfaceError) as error:
            if connection.in_atomic_block or time.monotonic() + pause > end:
                raise
            log.warning("database unavailable, trying again in %.1f s: %s", pause, error)
            connection.close()
            time.sleep(pause)
            pause = min(pause * 2, 5.0)
