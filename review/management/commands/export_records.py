"""Export a run's questions and answers in the format of another tool."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evaluation.formats.export import write_atomically
from evaluation.formats.records import NATIVE, form_names
from evaluation.management.site_command import SiteCommand
from review.management.options import command_errors, find_run
from review.reports.records import export_records


class Command(SiteCommand):
    """``export_records RUN --output FILE --form NAME``: docs/files.md describes each format."""

    help = "Write a run's questions, answers, scores and ratings in Concord's format or another tool's."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int)
        parser.add_argument("--output", type=Path, required=True, metavar="FILE")
        parser.add_argument("--form", default=NATIVE, choices=form_names(), help="format of the file")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the file atomically."""
        run = find_run(options["run"])
        with command_errors():
            write_atomically(options["output"], export_records(run, options["form"]).chunks)
        self.stdout.write(str(options["output"]))
