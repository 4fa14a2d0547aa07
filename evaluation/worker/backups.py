"""Backups: one file with the database as it was at one moment and a manifest of what it is, and the way back into an
empty place. SQLite is copied online, PostgreSQL by its own ``pg_dump`` and ``pg_restore``; nobody has to stop working.

The signing key is not in it: stored keys of endpoints can only be read again with the same ``SECRET_KEY``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
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

from evaluation.core.errors import Refused
from evaluation.models import Attempt, Run, WorkUnit
from evaluation.worker.units import HELD

MANIFEST = "manifest.json"
CONTENT = "database"
CHUNK_BYTES = 1024 * 1024
COPY = "backup"  # the alias under which a copy is opened


class Manifest(BaseModel):
    """What a backup says of itself. ``migrations`` names the last of each app; ``key`` stands for the signing key."""

    made_at: datetime
    engine: str
    engine_version: str
    django: str
    python: str
    migrations: dict[str, str]
    key: str
    sha256: str
    bytes: int


def take(target: Path) -> Manifest:
    """Write a backup that was opened and read again, for its owner alone; nothing is left of one that fails.

    :raises Refused: where there is a file already, a tool is missing or what was copied cannot be read.
    :raises OSError: where it cannot be written.
    """
    if target.exists():
        raise Refused("backup_exists", file=str(target))
    with tempfile.TemporaryDirectory(prefix=".backup", dir=target.parent) as folder:
        content, packed = Path(folder) / CONTENT, Path(folder) / "packed"
        made_at = timezone.now()
        migrations = _dump(content) if connection.vendor == "postgresql" else _copy(content)
        manifest = Manifest(
            made_at=made_at,
            engine=connection.vendor,
            engine_version=".".join(str(part) for part in connection.get_database_version()),
            django=django.__version__,
            python=sys.version.split()[0],
            migrations=migrations,
            key=_key(),
            sha256=_digest(_chunks(content)),
            bytes=content.stat().st_size,
        )
        with zipfile.ZipFile(packed, "x", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(MANIFEST, manifest.model_dump_json(indent=1))
            archive.write(content, CONTENT)
        content.unlink()
        if _digest(_content(packed)) != manifest.sha256:
            raise Refused("backup_damaged", file=str(target))
        packed.chmod(0o600)
        packed.rename(target)
    return manifest


def put_back(source: Path) -> Manifest:
    """Restore a backup into a database that has nothing in it; all of it or nothing.

    :raises Refused: where the place is not empty, or the backup is damaged, of another kind of database or newer than
        this code.
    """
    manifest = manifest_of(source)
    if manifest.engine != connection.vendor:
        raise Refused("backup_other_engine", theirs=manifest.engine, ours=connection.vendor)
    newest = {app: max(name for label, name in _on_disk() if label == app) for app, _ in _on_disk()}
    if newer := sorted(app for app, name in manifest.migrations.items() if name > newest.get(app, name)):
        raise Refused("backup_newer", apps=", ".join(newer))
    _refuse_unless_empty()
    folder = None if connection.vendor == "postgresql" else Path(connection.settings_dict["NAME"]).parent
    with tempfile.TemporaryDirectory(prefix=".restore", dir=folder) as made:
        content = Path(made) / CONTENT
        with content.open("xb") as file:
            content.chmod(0o600)
            for chunk in _content(source):
                file.write(chunk)
        if _digest(_chunks(content)) != manifest.sha256:
            raise Refused("backup_damaged", file=str(source))
        if connection.vendor == "postgresql":
            _tool(
                "pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", str(content)
            )
        else:
            _look_through(content)
            content.replace(connection.settings_dict["NAME"])
    return manifest


def manifest_of(source: Path) -> Manifest:
    """What a backup says of itself.

    :raises Refused: ``backup_unreadable`` for a file that is none.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            return Manifest.model_validate_json(archive.read(MANIFEST))
    except (OSError, zipfile.BadZipFile, KeyError, ValidationError) as error:
        raise Refused("backup_unreadable", file=str(source), error=type(error).__name__) from error


def has_our_key(manifest: Manifest) -> bool:
    """Whether the backup was made under the signing key in use."""
    return manifest.key == _key()


def paid_again() -> tuple[int, list[tuple[int, str, int]]]:
    """After a restore: how many calls were out when the backup was made, and the runs that go on with their open units.
    What was called for these after the backup is called and paid again."""
    out = Attempt.objects.filter(reply__isnull=True, unit__state__in=HELD)
    waiting = Q(units__state__in=[WorkUnit.State.BLOCKED, WorkUnit.State.TODO, *HELD])
    runs = Run.objects.annotate(open=Count("units", filter=waiting)).filter(open__gt=0).order_by("pk")
    runs = runs.exclude(state=Run.State.CANCELLED)
    return out.count(), list(runs.values_list("pk", "state", "open"))


def _key() -> str:
    return salted_hmac("concord.backup", "", algorithm="sha256").hexdigest()[:16]


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while chunk := opened.read(CHUNK_BYTES):
            yield chunk


def _content(source: Path) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(source) as archive, archive.open(CONTENT) as opened:
            while chunk := opened.read(CHUNK_BYTES):
                yield chunk
    except zipfile.BadZipFile as error:
        raise Refused("backup_damaged", file=str(source)) from error


def _digest(chunks: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _copy(file: Path) -> dict[str, str]:
    """SQLite's online copy, of one moment, while others write."""
    connection.ensure_connection()
    with closing(sqlite3.connect(file)) as copy:
        connection.connection.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
    return _look_through(file)


def _look_through(file: Path) -> dict[str, str]:
    """Open a copy and have SQLite check all of it; its last migrations."""
    try:
        with closing(sqlite3.connect(file)) as copy:
            found = [row[0] for row in copy.execute("PRAGMA integrity_check")]
    except sqlite3.DatabaseError as error:
        raise Refused("backup_damaged", file=str(file)) from error
    if found != ["ok"]:
        raise Refused("backup_damaged", file=str(file))
    connections.settings[COPY] = {**connection.settings_dict, "NAME": str(file), "OPTIONS": {}}
    try:
        return _last_migrations(COPY)
    finally:
        connections[COPY].close()
        del connections.settings[COPY], connections[COPY]


def _dump(file: Path) -> dict[str, str]:
    """PostgreSQL's own dump, read again from its beginning to its end."""
    migrations = _last_migrations("default")
    _tool("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={file}")
    _run(["pg_restore", f"--file={os.devnull}", str(file)], {})
    return migrations


def _last_migrations(alias: str) -> dict[str, str]:
    applied = sorted(MigrationRecorder(connections[alias]).applied_migrations())
    ours = {app for app, _ in _on_disk()}
    return {app: name for app, name in applied if app in ours}


def _on_disk() -> list[tuple[str, str]]:
    """Every migration of this code, by app and name."""
    return sorted(MigrationLoader(None).disk_migrations)


def _refuse_unless_empty() -> None:
    if connection.vendor == "postgresql":
        taken = [connection.settings_dict["NAME"]] if connection.introspection.table_names() else []
    else:
        files = [Path(f"{connection.settings_dict['NAME']}{end}") for end in ("", "-wal", "-shm")]
        taken = [str(file) for file in files if file.exists() and file.stat().st_size]
    if taken:
        raise Refused("restore_not_empty", place=", ".join(taken))


def _tool(name: str, *arguments: str) -> None:
    """Run a program of PostgreSQL on the database, signed in as the site is."""
    command, environment = connection.client.settings_to_cmd_args_env(connection.settings_dict, [])
    *server, database = command[1:]
    _run([name, *server, "--no-password", f"--dbname={database}", *arguments], environment or {})


def _run(command: list[str], environment: dict[str, str]) -> None:
    if not shutil.which(command[0]):
        raise Refused("tool_missing", tool=command[0])
    done = subprocess.run(  # noqa: S603 -- our own command
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Refused("tool_failed", tool=command[0], error=done.stderr.strip()[-1000:])
