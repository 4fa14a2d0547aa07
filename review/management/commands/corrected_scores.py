"""Print corrected scores of a run next to judge-only and reviewed ones."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from evaluation.management.site_command import SiteCommand
from review.management.options import find_run
from review.management.sheets import DASH, Sheet, number, write
from review.management.tables import figure_text, interval_text, print_plan
from review.queues.planning import next_review, plan_json
from review.reports.estimates import CorrectionSheet, ScoreEstimates, correction_sheet
from review.reports.figure import Figure, any_time_sentence, notes, withheld_reason
from review.reports.inputs import load_inputs

ESTIMATES = {
    "judge_only": "judge only",
    "reviewed": "reviewed",
    "corrected": "corrected",
    "corrected_this_run": "corrected, this run",
}


class Command(SiteCommand):
    """``corrected_scores RUN [--by category] [--format json]``: three estimates of the overall score and each
    metric."""

    help = "Print judge-only, reviewed and corrected figures with their intervals, or what is missing for them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int)
        parser.add_argument("--by", choices=["category"], default="", help="also print figures by category")
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compute and print the estimates."""
        basis = load_inputs(find_run(options["run"]))
        correction, plan = correction_sheet(basis, by_category=options["by"] == "category"), next_review(basis)
        if options["format"] == "json":
            document = {**correction.to_dict(), "next_review": plan_json(plan)}
            self.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2))
            return
        write(self.stdout, _sheets(correction))
        print_plan(self, plan)


def _sheets(correction: CorrectionSheet) -> Iterator[Sheet]:
    yield _sheet(_("Corrected figures of run %(run)s") % {"run": correction.run_id}, correction.estimates)
    for category, estimates in correction.by_category.items():
        yield _sheet(_("Category %(name)s") % {"name": category or DASH}, estimates)


def _sheet(title: str, estimates: Mapping[str, ScoreEstimates]) -> Sheet:
    header = (
        *(_("figure"), _("estimate"), _("value"), _("95% CI"), _("applies to")),
        *("n", _("labels"), _("effective labels"), "lambda", _("method or missing data")),
    )
    rows = [
        _row(name, _estimate(kind, figure), figure)
        for name, score_estimates in estimates.items()
        for kind, figure in score_estimates.by_name()
        if kind != "corrected_this_run" or not figure.withheld
    ]
    return Sheet(title, header, rows, numbers_from=2)


def _estimate(kind: str, figure: Figure) -> str:
    """Name the estimate; with unrated judged parts it is only partly corrected."""
    return ESTIMATES[kind].replace("corrected", "partly corrected") if figure.partly_corrected else ESTIMATES[kind]


def _row(name: str, estimate: str, figure: Figure) -> tuple[str, ...]:
    labels, slope = figure.extra.get("labels"), figure.extra.get("lambda")
    return (
        *(
            name,
            estimate,
            figure_text(figure),
            interval_text(figure),
            figure.target.replace("_", " ") or DASH,
            str(figure.n),
        ),
        *(DASH if labels is None else str(labels), number(figure.extra.get("effective_labels"), 1)),
        *(number(slope), _method_or_missing(figure)),
    )


def _method_or_missing(figure: Figure) -> str:
    """Describe what is missing, or the method and its notes."""
    if figure.withheld:
        return " ".join(part for part in (withheld_reason(figure), any_time_sentence(figure)) if part)
    return " · ".join(part for part in (str(figure.extra.get("method", "")), *notes(figure)) if part)
