"""``migrate`` with the guards away meanwhile: SQLite cannot rebuild a table that a trigger elsewhere names."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands.migrate import Command as Migrate
from django.db import connections
from django.db.migrations.exceptions import NodeNotFoundError

from evaluation.storage import guards
from evaluation.work.database import make_file

TOO_OLD = (
    "This database was made by a checkout from before commit 93a1f38, and not all migrations then were applied. "
    "Run migrate at commit 9c7b166 first, then here. Nothing was changed."
)


class Command(Migrate):
    """Django's own; afterwards every guard is there as it is defined now."""

    def execute(self, *args: Any, **options: Any) -> Any:
        """Migrate. Django checks the database before it handles the command, when no guard is there yet. ``--plan`` and
        ``--check`` change nothing; where no migration is left, they too name a guard that is missing.

        :raises CommandError: for a database that was left before the first migrations were joined.
        """
        only_tells = options["plan"] or options["check_unapplied"]
        around = guards.excused if only_tells else guards.away
        make_file(connections[options["database"]])
        try:
            with around(connections[options["database"]]):
                return super().execute(*args, **options)
        except NodeNotFoundError as error:
            raise CommandError(TOO_OLD) from error
