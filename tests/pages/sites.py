"""Sites with data for tests of pages: built once for all workers, and copied into the test database from then on."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from functools import cache

import django
from django.conf import settings
from django.db import connection
from django.utils import timezone

from tests.databases import FOLDER, ROOT, exclusive

#: The code and the files that decide the rows of a prepared site.
SOURCES = (
    *("config", "contrib", "evaluation", "review", "examples"),
    *("tests/databases.py", "tests/factories.py", "tests/pages/conftest.py", "tests/pages/tours.py"),
    *("tests/installed.py", "tests/pages/world.py", "tests/review/builders.py"),
)


def load_site(name: str, build: Callable[[], None]) -> None:
    """Fill the test database with a site. Whoever needs it first builds it; the others wait and copy its file.

    On PostgreSQL it is built for each test.
    """
    connection.ensure_connection()
    if connection.vendor != "sqlite":
        build()
        return
    file = FOLDER / f"site-{name}-{_digest()}.sqlite3"
    with exclusive():
        if not file.exists():
            build()
            for outdated in FOLDER.glob(f"site-{name}-*"):
                outdated.unlink()
            draft = file.with_suffix(".draft")
            with sqlite3.connect(draft) as database:
                connection.connection.backup(database)
            database.close()
            draft.rename(file)
            return
    with sqlite3.connect(file) as database:
        database.backup(connection.connection)
    database.close()


@cache
def _digest() -> str:
    """Identify the rows of a site: by the code that makes them, and by the day, since pages tell and compare dates."""
    digest = hashlib.sha256(f"{django.__version__} {settings.INSTALLED_APPS} {timezone.now().date()}".encode())
    for source in SOURCES:
        path = ROOT / source
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
