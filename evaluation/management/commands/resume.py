"""Go on with a paused run."""

from typing import Any

from django.core.management.base import CommandParser

from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, refusals, report, run_numbered, work_off
from evaluation.runs.making import resume_run
from evaluation.runs.results import drift
from evaluation.specs.flags import dollars


class Command(SiteCommand):
    """``resume RUN``: exit 0 when complete, 100 when incomplete, 1 when it is neither paused nor running."""

    help = "Go on with a paused run under the configuration it was made with, in this process."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run."""
        parser.add_argument("run", type=int, metavar="RUN")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="what its calls may cost in all")
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what has changed since, then work."""
        run = run_numbered(options["run"])
        for part in drift(run):
            line = f"{part.part} {part.name}: the run keeps version {part.used}; the newest is {part.newest}"
            self.stderr.write(line, self.style.WARNING)
        with refusals(self):
            run = resume_run(run, None, options["budget"])
        report(self, work_off(run), options["format"])
