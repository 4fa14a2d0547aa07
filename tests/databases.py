"""Test databases: migrated once and copied for each worker, and emptied quickly after tests that commit."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import django
import psycopg
from django.conf import settings
from django.db import connection, transaction

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "var" / "tests"
# Filled by Django itself after each migration, and never changed by a test.
DJANGO_TABLES = {"django_migrations", "django_content_type", "auth_permission"}


def migrated_sqlite() -> Path:
    """Return the file of a migrated SQLite database. It is never written to."""
    # Tests of extras run in a process with further apps, whose tables have a file of their own.
    apps = hashlib.sha256(" ".join(settings.INSTALLED_APPS).encode()).hexdigest()[:8]
    path = FOLDER / f"migrated-{apps}-{_digest()}.sqlite3"
    with exclusive():
        if not path.exists():
            for outdated in FOLDER.glob(f"migrated-{apps}-*"):
                outdated.unlink()
            with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
                draft = Path(folder) / path.name
                _migrate(f"sqlite:///{draft}")
                # One file, without a write-ahead log beside it.
                with sqlite3.connect(draft) as database:
                    database.execute("PRAGMA journal_mode = DELETE")
                database.close()
                draft.rename(path)
    return path


def migrated_postgres(server: str) -> str:
    """Return the name of a migrated database on the server, which serves as a template only."""
    name, digest = f"{urlsplit(server).path.removeprefix('/')}_migrated", _digest()
    with exclusive(), psycopg.connect(server, dbname="postgres", autocommit=True) as server_connection:
        stored_digest = server_connection.execute(
            "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", [name]
        ).fetchone()
        if stored_digest != (digest,):
            server_connection.execute(f'DROP DATABASE IF EXISTS "{name}"')
            server_connection.execute(f'CREATE DATABASE "{name}"')
            _migrate(urlunsplit(urlsplit(server)._replace(path=f"/{name}")))
            server_connection.execute(f"COMMENT ON DATABASE \"{name}\" IS '{digest}'")
    return name


@contextmanager
def exclusive() -> Iterator[None]:
    """Let one process at a time build a database."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _digest() -> str:
    """Identify the schema: by the apps, the migrations, and the code that installs triggers and guards."""
    files = [*ROOT.glob("*/migrations/*.py"), *ROOT.glob("*/storage/*.py"), *ROOT.glob("*/models/*.py")]
    files += [*ROOT.glob("contrib/*/migrations/*.py"), *ROOT.glob("contrib/*/models.py")]
    digest = hashlib.sha256(f"{django.__version__} {settings.INSTALLED_APPS}".encode())
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _migrate(address: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"DATABASE_URL": address, "CONCORD_VAR": folder}
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stderr=subprocess.DEVNULL)


class Baseline:
    """The state of the test database before the first test."""

    @classmethod
    def prepare(cls) -> Baseline:
        """Copy the migrated database to where Django is about to create its test database."""
        test = settings.DATABASES["default"]["TEST"] = {**settings.DATABASES["default"].get("TEST", {})}
        test["MIGRATE"] = False
        baseline = cls()
        if connection.vendor == "postgresql":
            test["TEMPLATE"] = migrated_postgres(os.environ["DATABASE_URL"])
        else:
            # Django's test database is in memory, shared by the connections of the process, as long as one is open.
            baseline.anchor = sqlite3.connect(connection.creation._get_test_db_name(), uri=True)
            with sqlite3.connect(migrated_sqlite()) as file:
                file.backup(baseline.anchor)
            file.close()
        return baseline

    def __init__(self) -> None:
        self.anchor: sqlite3.Connection | None = None
        self.copy = sqlite3.connect(":memory:", check_same_thread=False)

    def record(self) -> None:
        """Keep the present rows as what each test starts from."""
        if connection.vendor == "sqlite":
            connection.ensure_connection()
            connection.connection.backup(self.copy)

    def restore(self) -> None:
        """Undo everything that a test committed; triggers and sequences are as before."""
        connection.ensure_connection()
        if connection.vendor == "sqlite":
            self.copy.backup(connection.connection)
            return
        with transaction.atomic(), connection.cursor() as cursor:
            # Neither append-only triggers nor foreign keys apply in this mode.
            cursor.execute("SET LOCAL session_replication_role = replica")
            tables = set(connection.introspection.table_names(cursor)) - DJANGO_TABLES
            cursor.execute(" UNION ALL ".join(f"(SELECT '{table}' FROM \"{table}\" LIMIT 1)" for table in tables))
            for (table,) in cursor.fetchall():
                cursor.execute(f'DELETE FROM "{table}"')
                cursor.execute(
                    "SELECT setval(pg_get_serial_sequence(%s, attname), 1, false) FROM pg_attribute "
                    "WHERE attrelid = %s::regclass AND attidentity <> ''",
                    [f'"{table}"', f'"{table}"'],
                )
