"""Print the figures of a run."""

from typing import Any

from django.core.management.base import CommandParser

from evaluation.management.site_command import SiteCommand
from review.management.options import add_gate_arguments, gate_asked, refusals, run_named


class Command(SiteCommand):
    """``results RUN [--format json] [--fail-under X …]``: exit 0, 100 for a failed gate or a run not complete."""

    help = "Print a run's overall score, its metrics with coverage, and its categories."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run, how to print it, and the gate."""
        parser.add_argument("run", type=int)
        parser.add_argument("--format", choices=["text", "json"], default="text")
        add_gate_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Print, then say by the exit code whether there is a headline and the gate is passed."""
        from review.comparisons.gating import gate_of  # with the tables, a second at import that the help does not need
        from review.management.tables import show_results

        run = run_named(options["run"])
        with refusals():
            gate = gate_of(run, gate_asked(options))
        show_results(self, run, gate, options["format"])
