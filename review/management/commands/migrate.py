"""``migrate`` with the guards away meanwhile: SQLite cannot rebuild a table that a trigger elsewhere names."""

from __future__ import annotations

from typing import Any

from django.core.management.commands.migrate import Command as Migrate
from django.db import connections

from evaluation import guards


class Command(Migrate):
    """Django's own; afterwards every guard is there as it is defined now."""

    def execute(self, *args: Any, **options: Any) -> Any:
        """Migrate. Django checks the database before it handles the command, when no guard is there yet. ``--plan`` and
        ``--check`` change nothing; where no migration is left, they too name a guard that is missing."""
        only_tells = options["plan"] or options["check_unapplied"]
        around = guards.excused if only_tells else guards.away
        with around(connections[options["database"]]):
            return super().execute(*args, **options)
