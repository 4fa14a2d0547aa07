"""The base of the commands."""

from typing import Any

from django.core.management.base import BaseCommand

from evaluation.checks import OF_SETTINGS
from evaluation.worker.collector import held_back


class SiteCommand(BaseCommand):
    """A command that checks what an operator sets, and not what is the same at every start: addresses, which take a
    second to load, and tables. ``check`` and ``serve`` check all, ``migrate`` tables too. While it works it looks for
    cycles among new objects alone: it reads many values that stay."""

    requires_system_checks = [OF_SETTINGS]

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Do the work."""
        with held_back():
            return super().execute(*args, **options)
