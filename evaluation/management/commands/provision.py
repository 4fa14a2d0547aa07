"""Set a site up as a file says, or say what that would change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from evaluation.management.site_command import SiteCommand
from evaluation.management.working import refusals
from evaluation.runs.provisioning import provision, read_setup


class Command(SiteCommand):
    """``provision FILE.yaml``: exit 0; with ``--check`` 1 where something would change."""

    help = "Make project, people, roles, endpoints, judges, systems and tokens as a YAML file says; again: nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        """The file."""
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--check", action="store_true", help="only print what would change")

    def handle(self, *args: Any, **options: Any) -> None:
        """Provision, in one transaction."""
        try:
            with refusals(self, "set up"), transaction.atomic():
                done = provision(read_setup(options["file"]), options["file"].name)
                if options["check"]:
                    transaction.set_rollback(True)
        except OSError as error:
            raise CommandError(f"{options['file']}: {error.strerror}") from error
        for line in done.changes:
            self.stdout.write(line)
        if options["check"]:
            if done.changes:
                raise CommandError(f"{len(done.changes)} change(s) to make")
            self.stdout.write("nothing to change")
            return
        for username, path in done.links.items():
            self.stdout.write(f"{username} chooses a password at {settings.CONCORD_SITE_URL}{path}")
        for name, text in done.tokens.items():
            self.stdout.write(f"token {name}, shown once: {text}")
        if not done.changes:
            self.stdout.write("nothing to change")
