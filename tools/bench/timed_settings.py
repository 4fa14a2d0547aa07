"""The site's settings, with every transaction of 20 ms or more noted in ``transactions.jsonl`` of its folder: its end,
its seconds from the moment it holds the database (SQLite's begin as writers) to the end of its commit, and the line
that opened it."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from django.db import transaction

from config.settings import *  # noqa: F403 -- all of them

NOTED, NOTED_SECONDS = "transactions.jsonl", 0.02
_enter, _exit = transaction.Atomic.__enter__, transaction.Atomic.__exit__


def _enter_timed(self: Any) -> None:
    connection = transaction.get_connection(self.using)
    outermost = not connection.in_atomic_block
    _enter(self)
    if outermost:
        connection.concord_began = (time.monotonic(), _opening_line())


def _exit_timed(self: Any, *error: Any) -> None:
    connection = transaction.get_connection(self.using)
    _exit(self, *error)
    if not connection.in_atomic_block and (began := vars(connection).pop("concord_began", None)):
        seconds = time.monotonic() - began[0]
        if seconds >= NOTED_SECONDS:
            line = json.dumps({"at": time.time(), "seconds": seconds, "where": began[1]}) + "\n"
            with (Path(os.environ["CONCORD_VAR"]) / NOTED).open("a", encoding="utf-8") as file:
                file.write(line)


def _opening_line() -> str:
    """The innermost line of the product, else of what called the database."""
    frame = sys._getframe(2)
    caller = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    while frame is not None:
        name = frame.f_code.co_filename
        for package in ("/evaluation/", "/review/", "/django_q/"):
            if package in name:
                return f"{package[1:]}{name.rpartition(package)[2]}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return caller


transaction.Atomic.__enter__ = _enter_timed  # type: ignore[method-assign]
transaction.Atomic.__exit__ = _exit_timed  # type: ignore[method-assign]
