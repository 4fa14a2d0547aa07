"""Write a run's questions and answers in the form of another tool."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evaluation.formats.export import write_whole
from evaluation.formats.records import OWN, forms
from evaluation.management.site_command import SiteCommand
from review.management.options import refusals, run_named
from review.reports.records import export_records


class Command(SiteCommand):
    """``export_records RUN --output FILE --form NAME``: what each form can hold stands in docs/files.md."""

    help = "Write a run's questions, answers, scores and ratings in our own form or in that of another tool."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run, the file and its form."""
        parser.add_argument("run", type=int)
        parser.add_argument("--output", type=Path, required=True, metavar="FILE")
        parser.add_argument("--form", default=OWN, choices=forms(), help="whose form the file has")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the file, whole or not at all."""
        run = run_named(options["run"])
        with refusals():
            write_whole(options["output"], export_records(run, options["form"]).chunks)
        self.stdout.write(str(options["output"]))
