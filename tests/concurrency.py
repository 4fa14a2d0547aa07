"""Doing things at the same moment, each over a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

#: For tests in which threads wait for each other's transactions.
WAITS = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="threads do not wait for each other in SQLite's memory; PostgreSQL runs this"
)


def together(*actions: Callable[[], Any]) -> list[Any]:
    """The results of the actions, or the errors they raised, in the order in which they ended."""
    ready = threading.Barrier(len(actions))
    results: list[Any] = []

    def act(action: Callable[[], Any]) -> None:
        ready.wait()
        try:
            results.append(action())
        except Exception as error:  # noqa: BLE001 -- the test looks at whatever came out
            results.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=act, args=[action]) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
