"""Print runs side by side."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from review.comparing import compared_runs, side_by_side
from review.management.asking import refusals, run_named
from review.management.results_tables import comparison_sheets
from review.management.tables import write
from review.reporting.making import make_report


class Command(BaseCommand):
    """``compare [RUN…] [--questions NAME]``: without runs all of the question set."""

    help = "Print the scores of several runs side by side."

    def add_arguments(self, parser: CommandParser) -> None:
        """The runs, or the set they are about."""
        parser.add_argument("run", type=int, nargs="*")
        parser.add_argument("--questions", default="", help="all runs over this question set, or NAME@VERSION")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the table."""
        if options["run"]:
            runs = [run_named(pk) for pk in options["run"]]
        else:
            with refusals():
                runs = compared_runs(options["project"], options["questions"])
        if not runs:
            raise CommandError("there is no run to compare")
        reports = [make_report(run) for run in runs]
        if options["format"] == "json":
            self.stdout.write(json.dumps(side_by_side(reports), ensure_ascii=False, indent=2))
        else:
            write(self.stdout, comparison_sheets(reports))
