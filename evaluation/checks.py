"""System checks of our own; the database ones run with ``check --database default`` and before migrations."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db.utils import DatabaseError

from evaluation.core.errors import InvalidFile
from evaluation.judges.clients import price_table
from evaluation.storage import append_only, guards


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
    hint = "Run manage.py migrate: it puts them back."
    return [Error(f"the guard {name} is missing", hint=hint, id="concord.E005") for name in missing]


@register()
def the_table_of_prices_can_be_read(**_: Any) -> Sequence[CheckMessage]:
    """The file that ``CONCORD_PRICES`` names is one."""
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
