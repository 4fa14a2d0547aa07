"""The lanes of ``make test``: everything on SQLite, then what touches the database again on PostgreSQL.

``CONCORD_TEST_POSTGRES`` is the address of a PostgreSQL server that may create databases.
"""

from __future__ import annotations

import os
import subprocess
import sys

KEPT = {"PYTHONDONTWRITEBYTECODE": ""}
SLOW = "not faults and not bench and not crowd and not endurance"
# No database in them, one that they make themselves (faults), the same figures again from many rows (conversion), or
# texts and rights, which are Python's business on every database.
ONCE = (
    "tests/conversion",
    "tests/docs",
    "tests/evaluation/core",
    "tests/evaluation/embedding",
    "tests/evaluation/extras/attacks/test_running.py",
    "tests/evaluation/extras/batches/test_wire.py",
    "tests/evaluation/extras/local_embeddings",
    "tests/evaluation/files",
    "tests/evaluation/judging",
    "tests/evaluation/metrics",
    "tests/evaluation/profiles",
    "tests/evaluation/systems",
    "tests/evaluation/wording",
    "tests/faults",
    "tests/judge_server",
    "tests/pages/test_degenerate_runs.py",
    "tests/pages/test_hostile_text.py",
    "tests/pages/test_hostile_text_of_criteria.py",
    "tests/pages/test_hostile_text_of_reviewers.py",
    "tests/pages/test_page_objects.py",
    "tests/pages/test_unmarked_texts.py",
    "tests/review/charts",
    "tests/review/statistics",
    "tests/test_access_matrix.py",
    "tests/test_architecture.py",
    "tests/test_settings.py",
)


def lane(title: str, *arguments: str, **environment: str) -> int:
    """Run pytest once with its own environment; its exit code.

    Whatever the environment says, compiled modules are kept: without them each worker, the next lane and each of the
    commands that tests start compile everything anew.
    """
    print(f"== {title}", flush=True)
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", *arguments]
    return subprocess.run(command, env=os.environ | KEPT | environment, check=False).returncode


def main() -> int:
    """Exit code of the first failing lane, 0 when all pass."""
    code = lane("SQLite", "-m", SLOW)
    address = os.environ.get("CONCORD_TEST_POSTGRES", "")
    if code or not address:
        if not address:
            print("== PostgreSQL: skipped, CONCORD_TEST_POSTGRES is not set")
        return code
    pure = [f"--ignore={folder}" for folder in ONCE]
    return lane("PostgreSQL", "-m", f"{SLOW} and not browser", *pure, DATABASE_URL=address)


if __name__ == "__main__":
    sys.exit(main())
