"""Base class of the management commands."""

from typing import Any

from django.core.management.base import BaseCommand

from evaluation.checks import SETTINGS_TAG
from evaluation.storage.versions import product_version
from evaluation.worker.gc_pause import paused_gc


class SiteCommand(BaseCommand):
    """A command that runs only the checks of the operator's settings.

    URL checks take a second to load, and ``check``, ``serve`` and ``migrate`` cover the others. The garbage collector
    is relaxed while the command works, because it reads many long-lived objects."""

    requires_system_checks = [SETTINGS_TAG]

    def get_version(self) -> str:
        return product_version()

    def execute(self, *args: Any, **options: Any) -> str | None:
        with paused_gc():
            return super().execute(*args, **options)
