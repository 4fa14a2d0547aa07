"""Runs the tests: ``make test`` (no argument), ``make test-all`` (``all``), and in CI a slice of the rest.

``make test`` runs the tests that are not marked ``slow`` on SQLite and, where ``CONCORD_TEST_POSTGRES`` names a server
that may create databases, those marked ``both_databases`` on PostgreSQL. ``make test-all`` runs every test, everything
that uses the database on PostgreSQL too, the faults, and the core without optional features (``without-contrib``,
which can be run alone). ``slice NUMBER`` runs one of ``SLICES`` parts of what
``make test`` leaves out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

from tests import without_contrib

SLICES = 12
# Compiled modules are kept whatever the environment says: each worker, and each command that a test starts, would
# compile everything again.
KEEP_COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}
# Workers use all cores already; threads of linear algebra would only wait for each other.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
CORES = os.cpu_count() or 1
OTHER_TARGETS = "not endurance and not crowd and not bench"
# The exit code of pytest where no test has these marks, as a slice may have it.
NO_TESTS = 5


class Lane(NamedTuple):
    """Tests that run in one pytest process: their marks, and on which database.

    By default one worker more than there are cores, since tests wait for browsers and servers. Faults take one less,
    because each test starts several processes and expects them to work within some seconds."""

    title: str
    marks: str
    postgres: bool = False
    workers: int = CORES + 1


FAST = (
    Lane("Fast tests, SQLite", "not slow"),
    Lane("Fast tests, PostgreSQL", "both_databases and not slow and not faults", postgres=True),
)
ALL_TESTS = (
    Lane("All tests, SQLite", "not faults"),
    Lane("All tests, PostgreSQL", "database and not faults and not browser", postgres=True),
    Lane("Faults", "faults", workers=CORES),
)
REMAINING_TESTS = (
    Lane("Slow tests, SQLite", "slow and not faults"),
    Lane(
        "Other tests, PostgreSQL",
        "database and not faults and not browser and (slow or not both_databases)",
        postgres=True,
    ),
    Lane("Faults", "faults and slow", workers=CORES),
)


def run(lanes: tuple[Lane, ...], *options: str) -> int:
    """Run the lanes one after the other; the exit code of the first that fails, else 0.

    A failed test is not repeated: one that passes alone depends on its neighbours, which is a bug in the test.
    """
    server = os.environ.get("CONCORD_TEST_POSTGRES", "")
    for lane in lanes:
        if lane.postgres and not server:
            print(f"== {lane.title}: skipped, CONCORD_TEST_POSTGRES is not set")
            continue
        print(f"== {lane.title}", flush=True)
        environment = os.environ | KEEP_COMPILED | ONE_THREAD | ({"DATABASE_URL": server} if lane.postgres else {})
        spread = ("-n", str(lane.workers), "--dist", "worksteal")
        command = [sys.executable, "-m", "pytest", "-m", f"({lane.marks}) and {OTHER_TARGETS}", *spread, *options]
        code = subprocess.run(command, env=environment, check=False).returncode
        if code not in (0, NO_TESTS):
            return code
    return 0


def main(lane: str = "fast", *arguments: str) -> int:
    """Run what the first argument names."""
    thorough = "--hypothesis-profile=thorough"
    if lane == "all":
        return run(ALL_TESTS, thorough) or without_contrib.main()
    if lane == "without-contrib":
        return without_contrib.main(*arguments)
    if lane == "slice":
        return run(REMAINING_TESTS, thorough, f"--slice={int(arguments[0]) % SLICES}/{SLICES}")
    return run(FAST)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
