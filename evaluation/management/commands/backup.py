"""Take a backup of the database while everybody goes on working."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError

from evaluation.accounts.audit import record
from evaluation.core.errors import Refused
from evaluation.management.site_command import SiteCommand
from evaluation.messages.sentences import explain_refusal
from evaluation.models import AuditEvent
from evaluation.worker.backups import take
from evaluation.worker.health import BACKUP


class Command(SiteCommand):
    """``backup FILE``: the database of one moment in one file, read again before it gets its name."""

    help = "Write a backup of the database to FILE, which must not exist; nobody has to stop working."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to."""
        parser.add_argument("file", type=Path, help="file to write; its folder has room for twice the database")

    def handle(self, *args: Any, **options: Any) -> None:
        """Take it and note in the audit log that it was taken, and of which last event.

        :raises CommandError: where it could not be taken; there is no file then.
        """
        file: Path = options["file"]
        try:
            last = AuditEvent.objects.order_by("-id").first() or AuditEvent()
            manifest = take(file)
        except Refused as error:
            raise CommandError(explain_refusal(error)) from error
        except (OSError, DatabaseError) as error:
            raise CommandError(f"The backup could not be taken: {error}") from error
        self.stdout.write(f"{file}  {file.stat().st_size:,} bytes  sha256 {manifest.sha256}")
        self.stdout.write(
            f"{manifest.engine} {manifest.engine_version}, {manifest.made_at:%F %T %Z}, read again: whole"
        )
        try:
            record(None, BACKUP, last, sha256=manifest.sha256, bytes=manifest.bytes)
        except DatabaseError as error:
            self.stderr.write(f"The backup is whole; that it was taken could not be noted: {error}")
