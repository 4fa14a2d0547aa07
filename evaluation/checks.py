"""System checks of our own; the database ones run with ``check --database default`` and before migrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db.utils import DatabaseError

from evaluation import append_only


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
