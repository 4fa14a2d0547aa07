"""Backups: one file with a consistent copy of the database and a manifest, and restoring it into an empty place. SQLite
is copied online, PostgreSQL by ``pg_dump`` and ``pg_restore``; work continues meanwhile.

The signing key is not included: stored endpoint keys can only be read with the same ``SECRET_KEY``."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import django
from django.db import connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.crypto import salted_hmac
from pydantic import BaseModel, ValidationError

from evaluation.core.errors import DomainError
from evaluation.models import Attempt, Run, WorkUnit
from evaluation.worker.database import claimed, mark_sqlite_file
from evaluation.worker.units import HELD_STATES

MANIFEST_NAME = "manifest.json"
CONTENT_NAME = "database"
CHUNK_BYTES = 1024 * 1024
# Raised by ``zipfile`` for files that are damaged, encrypted, compressed in an unknown way, or lack a member.
ARCHIVE_ERRORS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, KeyError, RuntimeError)
POSTGRES_TOOLS = ("pg_dump", "pg_restore")
# Id, app, name and time of a row of ``django_migrations``.
MIGRATION_COLUMNS = 4
# The database alias of an opened copy.
COPY_ALIAS = "backup"


class Manifest(BaseModel):
    """The manifest of a backup. ``migrations`` has the last one of each app in the copy; ``key`` is a fingerprint of
    the signing key."""

    made_at: datetime
    engine: str
    engine_version: str
    django: str
    python: str
    migrations: dict[str, str]
    key: str
    sha256: str
    bytes: int


def create_backup(target: Path) -> Manifest:
    """Write and verify a backup, readable by its owner only; a failed one leaves nothing behind.

    :raises DomainError: if the file exists, a tool is missing or the copy cannot be read.
    :raises OSError: if it cannot be written.
    :raises sqlite3.Error: if the copy of an SQLite database cannot be written."""
    if target.exists():
        raise DomainError("backup_exists", file=str(target))
    _require_postgres_tools()
    with tempfile.TemporaryDirectory(prefix=".backup", dir=target.parent) as folder:
        content, packed = Path(folder) / CONTENT_NAME, Path(folder) / "packed"
        made_at = timezone.now()
        if connection.vendor == "postgresql":
            _run_postgres_tool("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={content}")
        else:
            _copy_sqlite(content)
        manifest = Manifest(
            made_at=made_at,
            engine=connection.vendor,
            engine_version=".".join(str(part) for part in connection.get_database_version()),
            django=django.__version__,
            python=sys.version.split()[0],
            migrations=_check_copy(content),
            key=_key_fingerprint(),
            sha256=_digest(_file_chunks(content)),
            bytes=content.stat().st_size,
        )
        with zipfile.ZipFile(packed, "x", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(MANIFEST_NAME, manifest.model_dump_json(indent=1))
            archive.write(content, CONTENT_NAME)
        content.unlink()
        if _digest(_archive_chunks(packed)) != manifest.sha256:
            raise DomainError("backup_damaged", file=str(target))
        packed.chmod(0o600)
        packed.rename(target)
    return manifest


def restore_backup(source: Path) -> Manifest:
    """Restore a backup into an empty database, completely or not at all.

    :raises DomainError: if the database is not empty or is served, a tool is missing, or the backup is damaged, of
        another engine, of another application, or newer than this code."""
    manifest = read_manifest(source)
    if manifest.engine != connection.vendor:
        raise DomainError("backup_other_engine", theirs=manifest.engine, ours=connection.vendor)
    newest = {app: max(name for label, name in _on_disk() if label == app) for app, _ in _on_disk()}
    if newer := sorted(app for app, name in manifest.migrations.items() if name > newest.get(app, name)):
        raise DomainError("backup_newer", apps=", ".join(newer))
    _require_empty()
    _require_postgres_tools()
    folder = None if connection.vendor == "postgresql" else Path(connection.settings_dict["NAME"]).parent
    with claimed("web", "worker"), tempfile.TemporaryDirectory(prefix=".restore", dir=folder) as temporary:
        content = Path(temporary) / CONTENT_NAME
        with content.open("xb") as file:
            content.chmod(0o600)
            for chunk in _archive_chunks(source):
                file.write(chunk)
        if _digest(_file_chunks(content)) != manifest.sha256:
            raise DomainError("backup_damaged", file=str(source))
        if "evaluation" not in manifest.migrations or _check_copy(content) != manifest.migrations:
            raise DomainError("backup_foreign", file=str(source))
        if connection.vendor == "postgresql":
            _run_postgres_tool(
                "pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", str(content)
            )
        else:
            content.replace(connection.settings_dict["NAME"])
    return manifest


def read_manifest(source: Path) -> Manifest:
    """Read the manifest of a backup.

    :raises DomainError: ``backup_unreadable`` for a file that is no backup."""
    try:
        with zipfile.ZipFile(source) as archive:
            return Manifest.model_validate_json(archive.read(MANIFEST_NAME))
    except (OSError, ValidationError, *ARCHIVE_ERRORS) as error:
        raise DomainError("backup_unreadable", file=str(source), error=type(error).__name__) from error


def has_current_key(manifest: Manifest) -> bool:
    """Return whether the backup was made with the current signing key."""
    return manifest.key == _key_fingerprint()


def calls_to_repeat() -> tuple[int, list[tuple[int, str, int]]]:
    """After a restore: the number of calls in flight when the backup was made, and the runs with open units that will
    continue. Calls made after the backup are made and paid again."""
    unanswered = Attempt.objects.filter(reply__isnull=True, unit__state__in=HELD_STATES)
    open_state = Q(units__state__in=[WorkUnit.State.BLOCKED, WorkUnit.State.TODO, *HELD_STATES])
    runs = Run.objects.annotate(open=Count("units", filter=open_state)).filter(open__gt=0).order_by("pk")
    runs = runs.exclude(state=Run.State.CANCELLED)
    return unanswered.count(), list(runs.values_list("pk", "state", "open"))


def _key_fingerprint() -> str:
    return salted_hmac("concord.backup", "", algorithm="sha256").hexdigest()[:16]


def _file_chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while chunk := opened.read(CHUNK_BYTES):
            yield chunk


def _archive_chunks(source: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(source) as archive, archive.open(CONTENT_NAME) as opened:
            while chunk := opened.read(CHUNK_BYTES):
                yield chunk
    except ARCHIVE_ERRORS as error:
        raise DomainError("backup_damaged", file=str(source)) from error


def _digest(chunks: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _copy_sqlite(file: Path) -> None:
    """Copy the SQLite database online while others write."""
    connection.ensure_connection()
    with closing(sqlite3.connect(file)) as copy:
        connection.connection.backup(copy)
        # A single file without companions, and with a mark of its own.
        copy.execute("PRAGMA journal_mode = DELETE")
        mark_sqlite_file(copy)


def _check_copy(file: Path) -> dict[str, str]:
    """Read a copy or dump to its end, and return the last migration of each app in it.

    :raises DomainError: if it is damaged."""
    if connection.vendor == "postgresql":
        _run(["pg_restore", f"--file={os.devnull}", str(file)], {})
        table = _run(["pg_restore", "--data-only", "--table=django_migrations", "--file=-", str(file)], {})
        rows = [line.split("\t") for line in table.splitlines()]
        return dict(sorted((row[1], row[2]) for row in rows if len(row) == MIGRATION_COLUMNS))
    try:
        with closing(sqlite3.connect(file)) as copy:
            check_rows = [row[0] for row in copy.execute("PRAGMA integrity_check")]
    except sqlite3.DatabaseError as error:
        raise DomainError("backup_damaged", file=str(file)) from error
    if check_rows != ["ok"]:
        raise DomainError("backup_damaged", file=str(file))
    connections.settings[COPY_ALIAS] = {**connection.settings_dict, "NAME": str(file), "OPTIONS": {}}
    try:
        return dict(sorted(MigrationRecorder(connections[COPY_ALIAS]).applied_migrations()))
    finally:
        connections[COPY_ALIAS].close()
        del connections.settings[COPY_ALIAS], connections[COPY_ALIAS]


def _on_disk() -> list[tuple[str, str]]:
    """All migrations of this code, by app and name."""
    return sorted(MigrationLoader(None).disk_migrations)


def _require_empty() -> None:
    if connection.vendor == "postgresql":
        occupied = [connection.settings_dict["NAME"]] if connection.introspection.table_names() else []
    else:
        files = [Path(f"{connection.settings_dict['NAME']}{end}") for end in ("", "-wal", "-shm")]
        occupied = [str(file) for file in files if file.exists() and file.stat().st_size]
    if occupied:
        raise DomainError("restore_not_empty", place=", ".join(occupied))


def _require_postgres_tools() -> None:
    """Require the client programs of the server's major version: an older one refuses the server, and the server
    refuses what a newer one writes.

    :raises DomainError: ``tools_missing``, with the versions that are there."""
    if connection.vendor != "postgresql":
        return
    server_version = str(connection.get_database_version()[0])
    versions = {tool: _tool_version(tool) for tool in POSTGRES_TOOLS}
    if set(versions.values()) != {server_version}:
        present = ", ".join(f"{tool} {version or '–'}" for tool, version in versions.items())
        raise DomainError("tools_missing", version=server_version, present=present)


def _tool_version(name: str) -> str:
    """Return the major version of a PostgreSQL program; empty if it is missing."""
    match = re.search(r"\) (\d+)", _run([name, "--version"], {})) if shutil.which(name) else None
    return match[1] if match else ""


def _run_postgres_tool(name: str, *arguments: str) -> None:
    """Run a PostgreSQL program with the site's connection settings."""
    command, environment = connection.client.settings_to_cmd_args_env(connection.settings_dict, [])
    *server, database = command[1:]
    _run([name, *server, "--no-password", f"--dbname={database}", *arguments], environment or {})


def _run(command: list[str], environment: dict[str, str]) -> str:
    """Run a program and return its output."""
    completed = subprocess.run(  # noqa: S603 -- our own command
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if completed.returncode:
        raise DomainError("tool_failed", tool=command[0], error=completed.stderr.strip()[-1000:])
    return completed.stdout
