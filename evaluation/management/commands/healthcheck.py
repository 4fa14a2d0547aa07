"""Say whether background work is alive; made for supervisors and monitoring."""

import sys
from typing import Any

from django.core.checks import WARNING, Tags, run_checks
from django.core.management.base import BaseCommand, CommandParser

from evaluation.work.dispatch import examine


class Command(BaseCommand):
    """``healthcheck``: exit code 0 when healthy, 1 with the problems listed otherwise."""

    help = "Exit with 1 when the cluster gives no sign of life, a run stands still or triggers are missing."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which host's cluster to look for."""
        parser.add_argument("--host", default="", help="only count heartbeats of this host")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the problems, or that there are none."""
        problems = examine(options["host"])
        checked = run_checks(tags=[Tags.database], databases=["default"])
        problems += [f"{found.msg}. {found.hint}" for found in checked if found.level == WARNING]
        for problem in problems:
            self.stdout.write(problem)
        if problems:
            sys.exit(1)
        self.stdout.write("healthy")
