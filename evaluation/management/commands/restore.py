"""Restore a backup into an empty place."""

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from evaluation.core.errors import Refused
from evaluation.messages.sentences import explain_refusal
from evaluation.worker.backups import has_our_key, paid_again, put_back
from evaluation.worker.units import let_all_lapse


class Command(BaseCommand):
    """``restore FILE``: into the database of ``DATABASE_URL``, which holds nothing yet."""

    help = "Restore a backup from FILE into the database that DATABASE_URL names, which must be empty."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Where from."""
        parser.add_argument("file", type=Path, help="a file that `backup` wrote")

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore it, bring it up to this code, and say what will be paid again.

        :raises CommandError: where it cannot be restored; the place is as empty as before then.
        """
        try:
            manifest = put_back(options["file"])
        except Refused as error:
            raise CommandError(explain_refusal(error)) from error
        except (OSError, DatabaseError) as error:
            raise CommandError(f"The backup could not be restored: {error}") from error
        call_command("migrate", verbosity=0)
        made = f"{manifest.made_at:%F %T %Z}"
        self.stdout.write(f"restored as of {made}; what was saved after that is not in it")
        let_all_lapse()
        out, runs = paid_again()
        self.stdout.write(f"{out} calls were out at that moment; what they cost is unknown")
        for run_id, state, units in runs:
            self.stdout.write(f"run {run_id} ({state}): {units} open units; calls made for them since are paid again")
        if not has_our_key(manifest):
            self.stdout.write("SECRET_KEY is another one: people sign in again, stored keys of endpoints are lost")
