"""Compare runs question by question, and put them in order."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from review.comparing.choosing import compared_runs
from review.comparing.whole import compare, comparison_json
from review.management.asking import refusals, run_named
from review.management.comparison_tables import comparison_sheets
from review.management.tables import write


class Command(BaseCommand):
    """``compare [RUN…] [--questions NAME]``: the first is the baseline; without runs all of the question set."""

    help = "Compare runs with the first of them, question by question, and rank them."

    def add_arguments(self, parser: CommandParser) -> None:
        """The runs, or the set they are about."""
        parser.add_argument("run", type=int, nargs="*")
        parser.add_argument("--questions", default="", help="all runs over this question set, or NAME@VERSION")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        parser.add_argument("--seed", type=int, default=0, help="of permutations and resamples")
        parser.add_argument("--resamples", type=int, default=2000, help="for the ranking")
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
        found = compare(list(dict.fromkeys(runs)), resamples=options["resamples"], seed=options["seed"])
        if options["format"] == "json":
            self.stdout.write(json.dumps(comparison_json(found), ensure_ascii=False, allow_nan=False, indent=2))
        else:
            write(self.stdout, comparison_sheets(found))
