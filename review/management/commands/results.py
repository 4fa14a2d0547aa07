"""Print the figures of a run."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from review.management.asking import GATE, run_named
from review.management.results_tables import results_sheets
from review.management.tables import write
from review.reporting.as_json import summary_json
from review.reporting.making import make_report


class Command(BaseCommand):
    """``results RUN [--format json]``: exit 0, 100 for a run that is not complete."""

    help = "Print a run's overall score, its metrics with coverage, and its categories."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run, and how to print it."""
        parser.add_argument("run", type=int)
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print, then say by the exit code whether there is a headline."""
        report = make_report(run_named(options["run"]))
        if options["format"] == "json":
            self.stdout.write(json.dumps(summary_json(report), ensure_ascii=False, indent=2))
        else:
            write(self.stdout, results_sheets(report))
        if not report.header.complete:
            sys.exit(GATE)
