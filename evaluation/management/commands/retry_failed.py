"""Retry the failed steps of a run."""

from typing import Any

from django.core.management.base import CommandParser

from evaluation.management.output import add_format_option, command_errors, finish_run, get_run, print_run_report
from evaluation.management.site_command import SiteCommand
from evaluation.worker.lifecycle import retry_failed


class Command(SiteCommand):
    """``retry_failed RUN``: exit 0 if complete, 100 if still incomplete, 1 if nothing can be retried."""

    help = "Retry all failed steps of a run in this process."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, metavar="RUN")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Retry the failed units. Existing scores stay."""
        run = get_run(options["run"])
        with command_errors(self):
            retry_failed(run, None)
        print_run_report(self, finish_run(run), options["format"])
