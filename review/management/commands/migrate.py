"""``migrate`` with the guards away meanwhile: SQLite cannot rebuild a table that a trigger elsewhere names."""

from typing import Any

from django.core.checks import Tags
from django.core.management.commands.migrate import Command as Migrate
from django.db import connections

from evaluation.checks import OF_SETTINGS
from evaluation.storage import guards
from evaluation.worker.database import make_file


class Command(Migrate):
    """Django's own; afterwards every guard is there as it is defined now. It checks tables, the database and what
    an operator sets, not the addresses, which take a second to load."""

    requires_system_checks = [Tags.models, Tags.database, OF_SETTINGS]

    def execute(self, *args: Any, **options: Any) -> Any:
        """Migrate. Django checks the database before it handles the command, when no guard is there yet. ``--plan`` and
        ``--check`` change nothing; where no migration is left, they too name a guard that is missing."""
        around = guards.excused if options["plan"] or options["check_unapplied"] else guards.away
        connection = connections[options["database"]]
        make_file(connection)
        with around(connection):
            return super().execute(*args, **options)
