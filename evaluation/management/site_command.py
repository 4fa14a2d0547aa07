"""The base of the commands."""

from django.core.management.base import BaseCommand

from evaluation.checks import OF_SETTINGS


class SiteCommand(BaseCommand):
    """A command that checks what an operator sets, and not what is the same at every start: addresses, which take a
    second to load, and tables. ``check`` and ``serve`` check all, ``migrate`` tables too."""

    requires_system_checks = [OF_SETTINGS]
