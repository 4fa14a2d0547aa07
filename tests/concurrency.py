"""Run actions at the same moment, each over its own connection."""

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


def run_concurrently(*actions: Callable[[], Any]) -> list[Any]:
    """Run the actions in threads and return their results, or the errors they raised, in the order in which they
    ended."""
    ready = threading.Barrier(len(actions))
    results: list[Any] = []

    def run_action(action: Callable[[], Any]) -> None:
        ready.wait()
        try:
            results.append(action())
        except Exception as error:  # noqa: BLE001 -- the test looks at whatever came out
            results.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run_action, args=[action]) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
