"""Print the figures of a run."""

from typing import Any

from django.core.management.base import CommandParser

from evaluation.management.site_command import SiteCommand
from review.management.options import add_gate_arguments, command_errors, find_run, read_gate_request


class Command(SiteCommand):
    """``results RUN [--format json] [--fail-under X …]``: exit 0, 100 for a failed gate or a run not complete."""

    help = "Print a run's overall score, its metrics with coverage, and its categories."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int)
        parser.add_argument("--format", choices=["text", "json"], default="text")
        add_gate_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the figures; the exit code tells whether the run is complete and the gate is passed."""
        # Importing it with the tables takes a second that the help does not need.
        from review.comparisons.gates import run_gate
        from review.management.tables import show_results

        run = find_run(options["run"])
        with command_errors():
            gate = run_gate(run, read_gate_request(options))
        show_results(self, run, gate, options["format"])
