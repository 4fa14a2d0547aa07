"""``migrate`` without triggers: SQLite cannot rebuild a table that a trigger of another table names."""

from typing import Any

from django.core.checks import Tags
from django.core.management.commands.migrate import Command as Migrate
from django.db import connections

from evaluation.checks import SETTINGS_TAG
from evaluation.storage import guards
from evaluation.storage.versions import record_version
from evaluation.worker.database import create_sqlite_file


class Command(Migrate):
    """Django's ``migrate``; afterwards every trigger has its current definition.

    It runs the checks of models, database and settings, but not those of URLs, which take a second to load."""

    requires_system_checks = [Tags.models, Tags.database, SETTINGS_TAG]

    def execute(self, *args: Any, **options: Any) -> Any:
        """Migrate with triggers suspended. ``execute`` is overridden because Django checks the database before
        ``handle``.

        ``--plan`` and ``--check`` change nothing, but report a missing trigger if no migration is left."""
        guard_context = guards.bypassed if options["plan"] or options["check_unapplied"] else guards.suspended
        connection = connections[options["database"]]
        create_sqlite_file(connection)
        with guard_context(connection):
            output = super().execute(*args, **options)
        if guard_context is guards.suspended:
            record_version(connection)
        return output
