"""Print what the experts would have said of all answers, beside what the judge said."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from evaluation.management.site_command import SiteCommand
from review.management.options import run_named
from review.management.sheets import NOTHING, Sheet, number, write
from review.management.tables import between, print_plan, short
from review.queues.planning import next_review, plan_json
from review.reports.estimates import CorrectionSheet, ThreeWays, three_ways
from review.reports.figure import Figure, any_time_sentence, notes, why_withheld
from review.reports.gathering import gather

ESTIMATES = {
    "judge_only": "judge only",
    "reviewed": "reviewed",
    "corrected": "corrected",
    "corrected_this_run": "corrected, this run",
}


class Command(SiteCommand):
    """``correct RUN [--by category] [--format json]``: the three estimates of the overall score and of each metric."""

    help = "Print judge-only, reviewed and corrected figures with their intervals, or what is missing for them."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run, and how to print it."""
        parser.add_argument("run", type=int)
        parser.add_argument("--by", choices=["category"], default="", help="also the figures of each category")
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compute and print."""
        basis = gather(run_named(options["run"]))
        found, plan = three_ways(basis, by_category=options["by"] == "category"), next_review(basis)
        if options["format"] == "json":
            told = {**found.to_dict(), "next_review": plan_json(plan)}
            self.stdout.write(json.dumps(told, ensure_ascii=False, allow_nan=False, indent=2))
            return
        write(self.stdout, _sheets(found))
        print_plan(self, plan)


def _sheets(found: CorrectionSheet) -> Iterator[Sheet]:
    yield _sheet(_("Corrected figures of run %(run)s") % {"run": found.run_id}, found.estimates)
    for category, estimates in found.by_category.items():
        yield _sheet(_("Category %(name)s") % {"name": category or NOTHING}, estimates)


def _sheet(title: str, estimates: Mapping[str, ThreeWays]) -> Sheet:
    header = (
        *(_("figure"), _("estimate"), _("value"), _("95% interval"), _("about")),
        *("n", _("labels"), _("worth labels"), "lambda", _("method or what is missing")),
    )
    rows = [
        _row(name, _estimate(kind, figure), figure)
        for name, three in estimates.items()
        for kind, figure in three.named()
        if kind != "corrected_this_run" or not figure.withheld
    ]
    return Sheet(title, header, rows, numbers_from=2)


def _estimate(kind: str, figure: Figure) -> str:
    """What the figure may be called: with judged parts that nobody rated never corrected."""
    return ESTIMATES[kind].replace("corrected", "partly corrected") if figure.partly_corrected else ESTIMATES[kind]


def _row(name: str, estimate: str, figure: Figure) -> tuple[str, ...]:
    labels, slope = figure.extra.get("labels"), figure.extra.get("lambda")
    return (
        *(name, estimate, short(figure), between(figure), figure.target.replace("_", " ") or NOTHING, str(figure.n)),
        *(NOTHING if labels is None else str(labels), number(figure.extra.get("effective_labels"), 1)),
        *(number(slope), _last(figure)),
    )


def _last(figure: Figure) -> str:
    """What is missing, or how the figure was made and what a reader should know of it."""
    if figure.withheld:
        return " ".join(part for part in (why_withheld(figure), any_time_sentence(figure)) if part)
    return " · ".join(part for part in (str(figure.extra.get("method", "")), *notes(figure)) if part)
