"""Search for a better judge prompt on the open labels of a gold set."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from evaluation.judges.shipped import judge_row
from evaluation.management.output import (
    NOT_FINISHED,
    add_format_option,
    command_errors,
    finish_run,
    print_json,
    print_pause_reason,
    print_table,
)
from evaluation.management.site_command import SiteCommand
from evaluation.models import Run
from evaluation.runs.selectors import get_project
from evaluation.specs.flags import dollars
from evaluation.worker.lifecycle import resume
from review.calibration.overview import find_gold_set
from review.calibration.search import BUDGET_REASONS, open_search, search_cost, take_step
from review.models import Search, SearchResult


class Command(SiteCommand):
    """``calibrate FAMILY --judge J --gold SET --strategy examples|rewrite|map``: exit 0 when ended, 1 when stalled."""

    help = "Create versions of a judge prompt, judge examples and validation with them, and propose the best."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("family", metavar="FAMILY")
        parser.add_argument("--judge", default="", help="name of the judge; default: the project's, or the baseline")
        parser.add_argument("--gold", required=True, metavar="NAME", help="gold set to use, in its newest version")
        parser.add_argument("--strategy", required=True, choices=[*Search.Strategy])
        parser.add_argument("--rounds", type=int, default=3, help="for rewrite: number of rewriting rounds")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="limit for the total cost of its calls")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the search to its end; repeating the command resumes an interrupted search."""
        with command_errors(self):
            project = get_project(options["project"])
            judge, gold_set = judge_row(project, options["judge"]), find_gold_set(project.pk, options["gold"])
            family, strategy, budget = options["family"], options["strategy"], options["budget"]
            rounds = options["rounds"]
            search = open_search(gold_set, judge, family, strategy, by=None, rounds=rounds, budget=budget)
            while (run := take_step(search)) is not None:
                self._complete_run(run)
        self._print_result(search, options["format"])

    def _complete_run(self, run: Run) -> None:
        if run.state == Run.State.PAUSED and resume(run):
            run.refresh_from_db()
        run = finish_run(run)
        if run.state == Run.State.PAUSED and run.reason not in BUDGET_REASONS:
            print_pause_reason(self, run)
            sys.exit(NOT_FINISHED)

    def _print_result(self, search: Search, form: str) -> None:
        result = SearchResult.objects.select_related("version").get(search=search)
        if form == "json":
            version = result.version and str(result.version)
            spent = search_cost(search)
            facts = {"search": search.pk, "outcome": result.outcome, "version": version, "spent": spent}
            print_json(self, facts | {"figures": result.figures})
            return
        rows = [
            [row["kind"], row["metric"], row["n"], f"{row['loss']:.3f}", f"{row['gain']:+.3f}", _interval(row)]
            for row in result.figures
        ]
        print_table(self, ["method", "metric", "n", "loss", "reduction", "95% CI"], rows)
        self.stdout.write(" ".join(filter(None, [str(result.get_outcome_display()), str(result.version or "")])))


def _interval(row: dict[str, Any]) -> str:
    return "" if row["low"] is None else f"{row['low']:+.3f} to {row['high']:+.3f}"
