"""Print the card of a judge."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evaluation.judges.shipped import judge_row
from evaluation.management.output import command_errors, get_run, print_json
from evaluation.management.site_command import SiteCommand
from evaluation.runs.selectors import get_project
from review.judges.card import as_markdown, imported_card, load_judge_card


class Command(SiteCommand):
    """``judge_card NAME``: Markdown or JSON; for imported scores ``judge_card AUTHOR --run ID``."""

    help = "Print a judge's prompts, approvals, agreement with experts, attack results, cost and history."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("judge", metavar="NAME", help="name of a judge, or 'baseline'")
        parser.add_argument("--run", type=int, metavar="ID", help="run with imported scores of this judge")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        parser.add_argument("--format", choices=["md", "json"], default="md")

    def handle(self, *args: Any, **options: Any) -> None:
        with command_errors(self):
            if options["run"] is None:
                card = load_judge_card(judge_row(get_project(options["project"]), options["judge"]))
            else:
                card = imported_card(get_run(options["run"]), options["judge"])
        if options["format"] == "json":
            print_json(self, card.to_dict())
        else:
            self.stdout.write(as_markdown(card), ending="")
