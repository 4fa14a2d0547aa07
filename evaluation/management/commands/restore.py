"""Restore a backup into an empty database."""

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from evaluation.worker.backups import calls_to_repeat, has_current_key, restore_backup
from evaluation.worker.units import expire_all_leases


class Command(BaseCommand):
    """``restore FILE``: into the empty database of ``DATABASE_URL``."""

    help = "Restore a backup from FILE into the empty database of DATABASE_URL."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="file written by `backup`")

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore the backup, migrate it, and report calls that will be paid again. If it fails, the database is empty
        again."""
        manifest = restore_backup(options["file"])
        call_command("migrate", verbosity=0)
        backup_time = f"{manifest.made_at:%F %T %Z}"
        self.stdout.write(f"Restored as of {backup_time}. Later changes are not included.")
        expire_all_leases()
        open_calls, runs = calls_to_repeat()
        self.stdout.write(f"{open_calls} calls were in flight at that time; their cost is unknown.")
        for run_id, state, units in runs:
            self.stdout.write(f"run {run_id} ({state}): {units} open units; calls made since then are paid again")
        if not has_current_key(manifest):
            self.stdout.write(
                "SECRET_KEY has changed: people must log in again, stored endpoint keys are lost, and second factors "
                "no longer work: an administrator must reset them."
            )
