"""Export a queue's items to files."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.management.site_command import SiteCommand
from review.management.options import command_errors
from review.models import ReviewQueue
from review.reports.item_export import ITEM_EXPORTS, export_items_to


class Command(SiteCommand):
    """``export_items QUEUE --output FILE…``: the ending selects the format.

    .csv, .xlsx and .jsonl; .json holds Label Studio tasks and .xml their labelling configuration."""

    help = "Write the items of a review queue with all ratings. The file extension selects the format."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("queue", type=int)
        known = ", ".join(f".{ending}" for ending in ITEM_EXPORTS.extensions)
        parser.add_argument("--output", type=Path, action="append", required=True, help=f"file ending in {known}")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write each file atomically."""
        queue = ReviewQueue.objects.filter(pk=options["queue"]).first()
        if queue is None:
            raise CommandError(f"Queue {options['queue']} does not exist.", returncode=2)
        for path in options["output"]:
            with command_errors():
                export_items_to(queue, path)
            self.stdout.write(str(path))
