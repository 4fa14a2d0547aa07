"""Write a run's report into files."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evaluation.management.site_command import SiteCommand
from review.agreement.pages import agreement_pictures
from review.comparisons.gating import gate_of
from review.management.options import add_gate_arguments, gate_asked, refusals, run_named
from review.queues.planning import planned_review
from review.reports.exporting import REPORT_EXPORTS, export_to


class Command(SiteCommand):
    """``export_report RUN --output FILE…``: the ending chooses the format."""

    help = "Write a run's report; the ending of the file chooses the format."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run and the files."""
        parser.add_argument("run", type=int)
        known = ", ".join(REPORT_EXPORTS.endings)
        parser.add_argument("--output", type=Path, action="append", required=True, help=f"file ending in {known}")
        add_gate_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Write each file, whole or not at all."""
        run = run_named(options["run"])
        with refusals():
            gate = gate_of(run, gate_asked(options))
        for path in options["output"]:
            with refusals():
                export_to(run, path, gate, pictures=agreement_pictures, planned=planned_review)
            self.stdout.write(str(path))
