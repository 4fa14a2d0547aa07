"""System checks of our own; the database ones run with ``check --database default`` and before migrations.

Every process loads this file: what a check needs beside tables it imports when it is run.
"""

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as Advice
from django.db.utils import DatabaseError

from evaluation.core.errors import InvalidFile
from evaluation.storage import append_only, guards

OF_SETTINGS = "settings"  # the tag of checks that say what is wrong with what an operator sets


@register(Tags.database)
def append_only_triggers_are_installed(*, databases: Sequence[str] | None = None, **_: Any) -> Sequence[CheckMessage]:
    """Every append-only table has its triggers."""
    if not databases:
        return []
    try:
        missing = append_only.missing()
    except DatabaseError as error:
        return [Error(f"the database cannot be read: {error}", id="concord.E001")]
    return [
        Error(
            f"append-only triggers are missing on {table}",
            hint="End the last migration that touched it with RunPython(append_only.install).",
            id="concord.E002",
        )
        for table in missing
    ]


@register(Tags.database)
def guards_are_installed(*, databases: Sequence[str] | None = None, **_: Any) -> Sequence[CheckMessage]:
    """Every guard is there."""
    if not databases:
        return []
    try:
        missing = guards.missing()
    except DatabaseError as error:
        return [Error(f"the database cannot be read: {error}", id="concord.E001")]
    hint = "Run migrate: it puts them back."
    return [Error(f"the guard {name} is missing", hint=hint, id="concord.E005") for name in missing]


@register(Tags.database)
def files_are_private(*, databases: Sequence[str] | None = None, **_: Any) -> Sequence[CheckMessage]:
    """Nobody but the user who runs the site may read the embedded database, which holds sessions and answers."""
    if not databases:
        return []
    database = str(settings.DATABASES["default"]["NAME"])
    embedded = [Path(f"{database}{end}") for end in ("", "-wal", "-shm")] if "sqlite" in _engine() else []
    readable = [str(path) for path in (settings.VAR_DIR, *embedded) if _others_may_read(path)]
    return [
        Advice(
            f"other users of this machine can read {', '.join(readable)}",
            hint="Run chmod 700 on the folder and chmod 600 on the files.",
            id="concord.W001",
        )
    ] * bool(readable)


def _engine() -> str:
    return str(settings.DATABASES["default"]["ENGINE"])


def _others_may_read(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    except OSError:
        return False  # not there, or somebody else's


@register(OF_SETTINGS)
def the_table_of_prices_can_be_read(**_: Any) -> Sequence[CheckMessage]:
    """The file that ``CONCORD_PRICES`` names is one."""
    from evaluation.judges.prices import price_table

    try:
        price_table()
    except OSError as error:
        return [Error(f"CONCORD_PRICES: the file cannot be read: {error}", id="concord.E003")]
    except InvalidFile as error:
        return [
            Error(
                f"CONCORD_PRICES: {problem.file} {problem.field}: {problem.params['error']}",
                hint="docs/settings.md shows the form of the file.",
                id="concord.E004",
            )
            for problem in error.problems
        ]
    return []
