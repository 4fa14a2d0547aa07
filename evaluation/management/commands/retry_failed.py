"""Try the failed steps of a run again."""

from typing import Any

from django.core.management.base import CommandParser

from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, refusals, report, run_numbered, work_off
from evaluation.worker.lifecycle import retry_failed


class Command(SiteCommand):
    """``retry_failed RUN``: exit 0 when complete, 100 when still incomplete, 1 when nothing can be retried."""

    help = "Put every failed step of a run back to work in the next round, in this process."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run."""
        parser.add_argument("run", type=int, metavar="RUN")
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Retry, then work. What was scored before stays."""
        run = run_numbered(options["run"])
        with refusals(self):
            retry_failed(run, None)
        report(self, work_off(run), options["format"])
