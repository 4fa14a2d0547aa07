"""Resume a paused run."""

from typing import Any

from django.core.management.base import CommandParser

from evaluation.management.output import add_format_option, command_errors, finish_run, get_run, print_run_report
from evaluation.management.site_command import SiteCommand
from evaluation.runs.creation import resume_run
from evaluation.runs.results import drift
from evaluation.specs.flags import dollars


class Command(SiteCommand):
    """``resume_run RUN``: exit 0 if complete, 100 if incomplete, 1 if it is neither paused nor running."""

    help = "Resume a paused run in this process, with its original configuration."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, metavar="RUN")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="new limit for the total cost of its calls")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Warn about newer versions of its parts, then process the run."""
        run = get_run(options["run"])
        for change in drift(run):
            line = f"{change.part} {change.name}: the run keeps version {change.used}; the newest is {change.newest}"
            self.stderr.write(line, self.style.WARNING)
        with command_errors(self):
            run = resume_run(run, None, options["budget"])
        print_run_report(self, finish_run(run), options["format"])
