"""Write a run's report to files."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evaluation.management.site_command import SiteCommand
from review.agreement.pages import render_agreement_plots
from review.comparisons.gates import run_gate
from review.management.options import add_gate_arguments, command_errors, find_run, read_gate_request
from review.queues.planning import next_review_json
from review.reports.exports import REPORT_EXPORTS, export_to


class Command(SiteCommand):
    """``export_report RUN --output FILE…``: the ending chooses the format."""

    help = "Write a run's report. The file extension selects the format."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int)
        known = ", ".join(REPORT_EXPORTS.extensions)
        parser.add_argument("--output", type=Path, action="append", required=True, help=f"file ending in {known}")
        add_gate_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Write each file atomically."""
        run = find_run(options["run"])
        with command_errors():
            gate = run_gate(run, read_gate_request(options))
        for path in options["output"]:
            with command_errors():
                export_to(run, path, gate, pictures=render_agreement_plots, planned=next_review_json)
            self.stdout.write(str(path))
