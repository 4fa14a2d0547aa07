"""Set up a site from a file, or report what that would change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from evaluation.management.output import command_errors
from evaluation.management.site_command import SiteCommand
from evaluation.runs.provisioning import provision, read_provision_file


class Command(SiteCommand):
    """``provision FILE.yaml``: exit 0; with ``--check``, exit 1 if something would change."""

    help = "Create or update project, people, roles, endpoints, judges, systems and tokens from a YAML file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--check", action="store_true", help="only print the changes")

    def handle(self, *args: Any, **options: Any) -> None:
        """Apply the file in one transaction."""
        with command_errors(self, "set up"), transaction.atomic():
            provisioned = provision(read_provision_file(options["file"]), options["file"].name)
            if options["check"]:
                transaction.set_rollback(True)
        for line in provisioned.changes:
            self.stdout.write(line)
        if options["check"]:
            if provisioned.changes:
                raise CommandError(f"{len(provisioned.changes)} change(s) needed")
            self.stdout.write("nothing to change")
            return
        for username, path in provisioned.links.items():
            self.stdout.write(f"password link for {username}: {settings.CONCORD_SITE_URL}{path}")
        for name, text in provisioned.tokens.items():
            self.stdout.write(f"token {name}, shown once: {text}")
        if not provisioned.changes:
            self.stdout.write("nothing to change")
