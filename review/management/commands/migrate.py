"""``migrate`` with the guards away meanwhile: SQLite cannot rebuild a table that a trigger elsewhere names."""

from __future__ import annotations

from typing import Any

from django.core.management.commands.migrate import Command as Migrate
from django.db import connections

from evaluation import guards


class Command(Migrate):
    """Django's own; afterwards every guard is there as it is defined now."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate."""
        if options["plan"] or options["check_unapplied"]:
            super().handle(*args, **options)
            return
        with guards.away(connections[options["database"]]):
            super().handle(*args, **options)
