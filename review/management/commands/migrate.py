"""``migrate`` with the guards away meanwhile: SQLite cannot rebuild a table that a trigger elsewhere names."""

from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands.migrate import Command as Migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

from evaluation.checks import OF_SETTINGS
from evaluation.storage import guards
from evaluation.work.database import make_file

#: Of each half the first and last migration of the early checkouts, and the one that they were joined to.
JOINED = {
    "evaluation": ("0001_tables_of_the_machines_half", "0012_failed_logins", "0001_all_tables_of_the_machines_half"),
    "review": ("0001_tables_of_the_human_half", "0008_items_set_apart", "0001_all_tables_of_the_human_half"),
}
TOO_OLD = (
    "This database was made by a checkout from before commit 93a1f38, and not all migrations then were applied. "
    "Run migrate at commit 9c7b166 first, then here. Nothing was changed."
)


class Command(Migrate):
    """Django's own; afterwards every guard is there as it is defined now. It checks tables, the database and what
    an operator sets, not the addresses, which take a second to load."""

    requires_system_checks = [Tags.models, Tags.database, OF_SETTINGS]

    def execute(self, *args: Any, **options: Any) -> Any:
        """Migrate. Django checks the database before it handles the command, when no guard is there yet. ``--plan`` and
        ``--check`` change nothing; where no migration is left, they too name a guard that is missing.

        :raises CommandError: for a database that was left before the first migrations were joined.
        """
        only_tells = options["plan"] or options["check_unapplied"]
        around = guards.excused if only_tells else guards.away
        connection = connections[options["database"]]
        make_file(connection)
        _take_over(connection, record=not only_tells)
        with around(connection):
            return super().execute(*args, **options)


def _take_over(connection: BaseDatabaseWrapper, *, record: bool) -> None:
    """Let a database that has all the early migrations have the ones they were joined to.

    :raises CommandError: where it has some of them only.
    """
    recorder = MigrationRecorder(connection)
    applied = recorder.applied_migrations()
    for app, (first, last, joined) in JOINED.items():
        if (app, joined) in applied or (app, first) not in applied:
            continue
        if (app, last) not in applied:
            raise CommandError(TOO_OLD)
        if record:
            recorder.record_applied(app, joined)
