"""System checks. Database checks run with ``check --database default`` and before migrations.

Every process imports this module, so other imports are inside the checks."""

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as Advice
from django.db.utils import DatabaseError

from evaluation.core.errors import InvalidFile
from evaluation.metric_packages.discovery import FAULTS
from evaluation.storage import append_only, guards

SETTINGS_TAG = "settings"


@register(Tags.database)
def check_append_only_triggers(*, databases: Sequence[str] | None = None, **_: Any) -> Sequence[CheckMessage]:
    """Check that every append-only table has its triggers."""
    if not databases:
        return []
    try:
        missing = append_only.tables_without_triggers()
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
def check_guards(*, databases: Sequence[str] | None = None, **_: Any) -> Sequence[CheckMessage]:
    """Check that every guard is installed."""
    if not databases:
        return []
    try:
        missing = guards.missing_guards()
    except DatabaseError as error:
        return [Error(f"the database cannot be read: {error}", id="concord.E001")]
    hint = "Run migrate to restore it."
    return [Error(f"the guard {name} is missing", hint=hint, id="concord.E005") for name in missing]


@register(Tags.database)
def check_file_permissions(*, databases: Sequence[str] | None = None, **_: Any) -> Sequence[CheckMessage]:
    """Check that only the site's user can read the SQLite database, which holds sessions and answers."""
    if not databases:
        return []
    database = str(settings.DATABASES["default"]["NAME"])
    database_files = [Path(f"{database}{suffix}") for suffix in ("", "-wal", "-shm")] if "sqlite" in _engine() else []
    exposed_paths = [str(path) for path in (settings.VAR_DIR, *database_files) if _readable_by_others(path)]
    return [
        Advice(
            f"other users of this machine can read {', '.join(exposed_paths)}",
            hint="Run chmod 700 on the folder and chmod 600 on the files.",
            id="concord.W001",
        )
    ] * bool(exposed_paths)


def _engine() -> str:
    return str(settings.DATABASES["default"]["ENGINE"])


def _readable_by_others(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    except OSError:
        # The file is missing or belongs to another user.
        return False


@register(SETTINGS_TAG)
def check_metric_packages(**_: Any) -> Sequence[CheckMessage]:
    """Check that all packages of own metrics were registered."""
    return [
        Error(
            f"own metrics of {fault.package}: {fault.reason}",
            hint="Correct or uninstall the package, or change CONCORD_METRICS. See docs/own-metrics.md.",
            id="concord.E006",
        )
        for fault in FAULTS
    ]


@register(SETTINGS_TAG)
def check_price_table(**_: Any) -> Sequence[CheckMessage]:
    """Check that the file named by ``CONCORD_PRICES`` is valid."""
    from evaluation.judges.prices import price_table

    try:
        price_table()
    except OSError as error:
        return [Error(f"CONCORD_PRICES: the file cannot be read: {error}", id="concord.E003")]
    except InvalidFile as error:
        return [
            Error(
                f"CONCORD_PRICES: {problem.file} {problem.field}: {problem.params['error']}",
                hint="See docs/settings.md for the format of the file.",
                id="concord.E004",
            )
            for problem in error.problems
        ]
    return []
