"""The lanes of ``make test``: everything on SQLite, then what touches the database again on PostgreSQL; with ``faults``
those of ``make test-faults``. What failed in a lane runs once more, by itself; it is named either way.

``CONCORD_TEST_POSTGRES`` is the address of a PostgreSQL server that may create databases.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

KEPT = {"PYTHONDONTWRITEBYTECODE": ""}
SLOW = "not faults and not bench and not crowd and not endurance"
# The same figures again from many rows (conversion), or texts and rights, which are Python's business on any database.
ONCE = (
    "tests/conversion",
    "tests/docs",
    "tests/pages/test_degenerate_runs.py",
    "tests/pages/test_hostile_text.py",
    "tests/pages/test_hostile_text_of_criteria.py",
    "tests/pages/test_hostile_text_of_reviewers.py",
    "tests/pages/test_page_objects.py",
    "tests/pages/test_reading_budgets.py",
    "tests/pages/test_unmarked_texts.py",
    "tests/review/calibration/test_hold_out_stays_sealed.py",
    "tests/review/comparisons/test_verdict.py",
    "tests/review/reports/test_verdict.py",
    "tests/test_access_matrix.py",
    "tests/test_rest_schema.py",
    "tests/test_settings.py",
)


BY_FILE = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder")
FAILED = 1  # pytest's exit code where tests failed, and nothing else did


def lane(title: str, *arguments: str, spread: Sequence[str] = BY_FILE, **environment: str) -> int:
    """Run pytest with its own environment; its exit code, 0 also where all that failed passes by itself.

    Thousands of tests with browsers, servers and killed processes share the cores of a lane: one that fails there and
    passes alone was in the way of another, and says so without stopping everything that waits for the lane. What fails
    twice is broken.

    Whatever the environment says, compiled modules are kept: without them each worker, the next lane and each of the
    commands that tests start compile everything anew.
    """
    print(f"== {title}", flush=True)
    code = _pytest(environment, *spread, *arguments)
    if code == FAILED:
        print(f"== {title}: what failed, by itself; a test that is PASSED below depends on its neighbours", flush=True)
        code = _pytest(environment, "--last-failed", "--maxfail=1", "-rpf", *arguments)
    return code


def _pytest(environment: Mapping[str, str], *arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, env=os.environ | KEPT | environment, check=False).returncode


def main(which: str) -> int:
    """Exit code of the first failing lane, 0 when all pass."""
    if which == "faults":
        return lane("Faults", "-m", "faults and not endurance", "tests/faults", spread=("-n", "2"))
    code = lane("SQLite", "-m", SLOW)
    address = os.environ.get("CONCORD_TEST_POSTGRES", "")
    if code or not address:
        if not address:
            print("== PostgreSQL: skipped, CONCORD_TEST_POSTGRES is not set")
        return code
    once = [f"--ignore={folder}" for folder in ONCE]
    return lane("PostgreSQL", "-m", f"database and {SLOW} and not browser", *once, DATABASE_URL=address)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
