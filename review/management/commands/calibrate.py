"""Have a machine look for a better judge prompt on the open labels of a gold set."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandParser

from evaluation.judges.shipping import judge_row
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import (
    NOT_DONE,
    add_format,
    as_json,
    refusals,
    say_why_paused,
    table,
    work_off,
)
from evaluation.models import Run
from evaluation.runs.selectors import project_named
from evaluation.specs.flags import dollars
from evaluation.worker.lifecycle import resume
from review.calibration.overview import gold_set_named
from review.calibration.searching import OUT_OF_MONEY, open_search, spent_by, step
from review.models import Search, SearchResult


class Command(SiteCommand):
    """``calibrate FAMILY --judge J --gold SET --strategy examples|rewrite|map``: exit 0 at its end, 1 where it stands
    still."""

    help = "Make versions of a judge prompt, judge them on examples and validation, and offer the best as a candidate."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to better, for whom, by what."""
        parser.add_argument("family", metavar="FAMILY")
        parser.add_argument("--judge", default="", help="name of a judge; the project's own, else the baseline")
        parser.add_argument("--gold", required=True, metavar="NAME", help="gold set; its newest version is worked on")
        parser.add_argument("--strategy", required=True, choices=[*Search.Strategy])
        parser.add_argument(
            "--rounds", type=int, default=3, help="for rewrite: how often the best version is rewritten"
        )
        parser.add_argument("--budget", type=dollars, metavar="USD", help="what all its calls may cost")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Go on until it has ended; the same command goes on with one that was interrupted."""
        with refusals(self):
            project = project_named(options["project"])
            judge, gold_set = judge_row(project, options["judge"]), gold_set_named(project.pk, options["gold"])
            family, strategy, budget = options["family"], options["strategy"], options["budget"]
            rounds = options["rounds"]
            search = open_search(gold_set, judge, family, strategy, by=None, rounds=rounds, budget=budget)
            while (run := step(search)) is not None:
                self._work(run)
        self._tell(search, options["format"])

    def _work(self, run: Run) -> None:
        if run.state == Run.State.PAUSED and resume(run):
            run.refresh_from_db()
        run = work_off(run)
        if run.state == Run.State.PAUSED and run.reason not in OUT_OF_MONEY:
            say_why_paused(self, run)
            sys.exit(NOT_DONE)

    def _tell(self, search: Search, form: str) -> None:
        result = SearchResult.objects.select_related("version").get(search=search)
        if form == "json":
            version = result.version and str(result.version)
            spent = spent_by(search)
            told = {"search": search.pk, "outcome": result.outcome, "version": version, "spent": spent}
            as_json(self, told | {"figures": result.figures})
            return
        rows = [
            [one["kind"], one["metric"], one["n"], f"{one['loss']:.3f}", f"{one['gain']:+.3f}", _interval(one)]
            for one in result.figures
        ]
        table(self, ["made by", "metric", "n", "loss", "lower by", "95%"], rows)
        self.stdout.write(" ".join(filter(None, [str(result.get_outcome_display()), str(result.version or "")])))


def _interval(one: dict[str, Any]) -> str:
    return "" if one["low"] is None else f"{one['low']:+.3f} to {one['high']:+.3f}"
