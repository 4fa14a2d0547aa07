"""Backups: wrong files and missing programs are refused first; after a restore, leases end and calls are counted."""

from __future__ import annotations

import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from evaluation.core.errors import DomainError
from evaluation.messages.explanations import explain_refusal
from evaluation.models import WorkUnit
from evaluation.worker import units
from evaluation.worker.backups import Manifest, calls_to_repeat, create_backup, restore_backup
from tests.factories import make_draft_run, make_units

pytestmark = pytest.mark.both_databases
ON_SQLITE = pytest.mark.skipif(connection.vendor != "sqlite", reason="tests/faults/test_backup.py restores on both")
ON_POSTGRES = pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite needs no client programs")
MANIFEST, DATABASE = "manifest.json", "database"
Spoil = Callable[[Path, dict[str, bytes]], object]


@pytest.mark.django_db
def test_leased_units_are_counted_and_released() -> None:
    run = make_draft_run()
    work_units = make_units(run, 3)
    assert calls_to_repeat() == (0, [(run.pk, "draft", 3)])
    type(run).objects.filter(pk=run.pk).update(state="running")
    units.record_first_attempts(units.claim(run.pk, [WorkUnit.Kind.ASK], 2))
    WorkUnit.objects.filter(pk=work_units[2].pk).update(state="done")
    assert calls_to_repeat() == (2, [(run.pk, "running", 2)])
    assert units.claim(run.pk, [WorkUnit.Kind.ASK], 2) == []
    assert units.expire_all_leases() == 2
    assert len(units.claim(run.pk, [WorkUnit.Kind.ASK], 2)) == 2


def write_archive(file: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def mark_encrypted(file: Path, members: dict[str, bytes]) -> None:
    """Set the encryption flag of every member, in its local header and in the directory."""
    write_archive(file, members)
    content = bytearray(file.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        position = content.find(signature)
        while position >= 0:
            content[position + offset] |= 1
            position = content.find(signature, position + 1)
    file.write_bytes(content)


def flip_byte(file: Path, members: dict[str, bytes]) -> None:
    write_archive(file, members)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


def with_own_hash(members: dict[str, bytes], database: bytes, **fields: object) -> dict[str, bytes]:
    """Another database, under a manifest that gives its hash."""
    manifest = Manifest.model_validate_json(members[MANIFEST])
    fields |= {"sha256": sha256(database).hexdigest(), "bytes": len(database)}
    return {MANIFEST: manifest.model_copy(update=fields).model_dump_json().encode(), DATABASE: database}


def database_of(folder: Path, *statements: str) -> bytes:
    """Content of an SQLite database that the statements made."""
    with closing(sqlite3.connect(file := folder / "made.sqlite3")) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    content = file.read_bytes()
    file.unlink()
    return content


def foreign_database(file: Path) -> bytes:
    return database_of(file.parent, "CREATE TABLE recipes (name text)")


@pytest.fixture
def members(tmp_path: Path) -> dict[str, bytes]:
    """Members of a backup, whose database has no table but that of the migrations."""
    migrations = dict(sorted(MigrationLoader(None).disk_migrations))
    content = database_of(
        tmp_path,
        "CREATE TABLE django_migrations (id integer primary key, app text, name text, applied text)",
        *(
            f"INSERT INTO django_migrations (app, name, applied) VALUES ('{app}', '{name}', '2026-01-01 00:00:00')"
            for app, name in migrations.items()
        ),
    )
    manifest = Manifest(
        made_at=timezone.now(),
        engine="sqlite",
        engine_version="3",
        django="5",
        python="3",
        migrations=migrations,
        key="",
        sha256=sha256(content).hexdigest(),
        bytes=len(content),
    )
    return {MANIFEST: manifest.model_dump_json().encode(), DATABASE: content}


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, django_db_blocker: Any) -> Iterator[Path]:
    """Folder of the database that is restored into."""
    (folder := tmp_path / "target").mkdir()
    monkeypatch.setitem(connection.settings_dict, "NAME", str(folder / "site.sqlite3"))
    with django_db_blocker.unblock():
        yield folder


#: Spoils a backup; the code with which it is refused.
WRONG_FILES: dict[str, tuple[Spoil, str]] = {
    "no database": (lambda file, members: write_archive(file, {MANIFEST: members[MANIFEST]}), "backup_damaged"),
    "no manifest": (lambda file, members: write_archive(file, {DATABASE: members[DATABASE]}), "backup_unreadable"),
    "nothing": (lambda file, _: write_archive(file, {}), "backup_unreadable"),
    "a text": (lambda file, _: file.write_text("no archive"), "backup_unreadable"),
    "an empty file": (lambda file, _: file.write_bytes(b""), "backup_unreadable"),
    "a folder": (lambda file, _: file.mkdir(), "backup_unreadable"),
    "no file": (lambda file, _: None, "backup_unreadable"),
    "a manifest of another form": (
        lambda file, members: write_archive(file, members | {MANIFEST: b"[1]"}),
        "backup_unreadable",
    ),
    "a binary manifest": (
        lambda file, members: write_archive(file, members | {MANIFEST: b"\xff\x00"}),
        "backup_unreadable",
    ),
    "encrypted": (mark_encrypted, "backup_unreadable"),
    "a flipped byte": (flip_byte, "backup_damaged"),
    "another database": (
        lambda file, members: write_archive(file, members | {DATABASE: foreign_database(file)}),
        "backup_damaged",
    ),
    "another database with its hash": (
        lambda file, members: write_archive(file, with_own_hash(members, foreign_database(file))),
        "backup_foreign",
    ),
    "another database with its hash and no migrations": (
        lambda file, members: write_archive(file, with_own_hash(members, foreign_database(file), migrations={})),
        "backup_foreign",
    ),
    "a text with its hash": (
        lambda file, members: write_archive(file, with_own_hash(members, b"no database" * 900)),
        "backup_damaged",
    ),
    "another state than the manifest's": (
        lambda file, members: write_archive(
            file, with_own_hash(members, members[DATABASE], migrations={"evaluation": "0001_initial"})
        ),
        "backup_foreign",
    ),
}


@ON_SQLITE
@pytest.mark.parametrize("name", WRONG_FILES)
def test_wrong_file_is_refused_and_nothing_is_left(
    name: str, members: dict[str, bytes], target: Path, tmp_path: Path
) -> None:
    file = tmp_path / "a.backup"
    spoil, code = WRONG_FILES[name]
    spoil(file, members)
    with pytest.raises(DomainError) as refusal:
        restore_backup(file)
    assert refusal.value.code == code
    assert "site.sqlite3" not in explain_refusal(refusal.value)
    # The rest are locks of a site that is served.
    assert {path.suffix for path in target.iterdir()} <= {".sqlite3-web", ".sqlite3-worker"}


@ON_SQLITE
def test_whole_backup_is_restored(members: dict[str, bytes], target: Path, tmp_path: Path) -> None:
    write_archive(tmp_path / "a.backup", members)
    restore_backup(tmp_path / "a.backup")
    assert (target / "site.sqlite3").stat().st_size > 0


@ON_POSTGRES
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("programs", "present"),
    [
        ({}, "pg_dump –, pg_restore –"),
        ({"pg_dump": 12, "pg_restore": 12}, "pg_dump 12, pg_restore 12"),
        ({"pg_dump": None}, "pg_restore –"),
        ({"pg_dump": 99, "pg_restore": 99}, "pg_dump 99, pg_restore 99"),
    ],
    ids=["none", "older", "one", "newer"],
)
def test_missing_and_other_programs_are_named_before_the_backup(
    programs: dict[str, int | None], present: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server_version = connection.get_database_version()[0]
    (folder := tmp_path / "programs").mkdir()
    for program, version in programs.items():
        (file := folder / program).write_text(
            f'#!/bin/sh\necho "{program} (PostgreSQL) {version or server_version}.3"\n'
        )
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(DomainError) as refusal:
        create_backup(tmp_path / "a.backup")
    sentence = explain_refusal(refusal.value)
    assert f"PostgreSQL {server_version} are required" in sentence
    assert present in sentence
    assert list(tmp_path.iterdir()) == [folder]
