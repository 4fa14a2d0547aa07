"""Runs the core's tests on a copy of the checkout without optional features: ``python -m tests.run without-contrib``.

With names of apps (``python -m tests.run without-contrib pairs``) those alone are deleted, and those that need them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATHS = (
    *("tests/evaluation/accounts", "tests/evaluation/runs", "tests/review/queues", "tests/review/reports"),
    *("tests/pages/test_page_objects.py", "tests/pages/test_query_counts.py", "tests/pages/test_unmarked_texts.py"),
    *("tests/test_access_matrix.py", "tests/test_contrib.py"),
)
#: Apps that another app needs, and those that are deleted with it.
NEEDED_BY = {"corpora": ("generation",)}
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "var", "build", "__pycache__", ".*_cache", "node_modules")


def main(*names: str) -> int:
    """Check and test the product without the named apps, or without all; the first exit code other than 0."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "concord"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        remove_apps(copy, [*names, *(app for name in names for app in NEEDED_BY.get(name, ()))])
        environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        environment |= {"DATABASE_URL": f"sqlite:///{folder}/db.sqlite3", "OMP_NUM_THREADS": "1"}
        tests = ("-m", "pytest", "-n", str(os.cpu_count() or 1), "-m", "not slow and not faults and not browser")
        for command in (("manage.py", "check"), ("manage.py", "makemigrations", "--check"), (*tests, *PATHS)):
            code = subprocess.run([sys.executable, *command], cwd=copy, env=environment, check=False).returncode
            if code:
                return code
    return 0


def remove_apps(copy: Path, names: Collection[str]) -> None:
    """Delete the apps and their lines in the settings, as an operator would."""
    settings = copy / "config" / "settings.py"
    text = settings.read_text(encoding="utf-8")
    for name in names or (r"\w+",):
        text = re.sub(rf'^    "contrib\.{name}",\n', "", text, flags=re.MULTILINE)
    settings.write_text(text, encoding="utf-8")
    for path in [copy / "contrib" / name for name in names] or [copy / "contrib"]:
        shutil.rmtree(path)
