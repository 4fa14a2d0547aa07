"""Back up the database while the site is in use."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import DatabaseError

from evaluation.accounts.audit import record
from evaluation.management.site_command import SiteCommand
from evaluation.models import AuditEvent
from evaluation.worker.backups import create_backup
from evaluation.worker.health import BACKUP


class Command(SiteCommand):
    """``backup FILE``: a consistent copy of the database in one file, verified before it gets its name."""

    help = "Write a backup of the database to FILE, which must not exist. The site can stay in use."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="file to write; its disk needs twice the database's size")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the backup and record it, with the last event it contains, in the audit log."""
        file: Path = options["file"]
        last_event = AuditEvent.objects.order_by("-id").first() or AuditEvent()
        manifest = create_backup(file)
        self.stdout.write(f"{file}  {file.stat().st_size:,} bytes  sha256 {manifest.sha256}")
        self.stdout.write(
            f"{manifest.engine} {manifest.engine_version}, {manifest.made_at:%F %T %Z}, read back and verified"
        )
        try:
            record(None, BACKUP, last_event, sha256=manifest.sha256, bytes=manifest.bytes)
        except DatabaseError as error:
            self.stderr.write(f"The backup is complete, but could not be recorded in the audit log: {error}")
