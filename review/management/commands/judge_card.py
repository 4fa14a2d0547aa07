"""Print the card of a judge."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from evaluation.judges.shipping import judge_row
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import as_json, refusals, run_numbered
from evaluation.runs.selectors import project_named
from review.judges.prompts import as_markdown, imported_card, judge_prompts


class Command(SiteCommand):
    """``judge_card NAME``: Markdown, or JSON; of imported scores ``judge_card AUTHOR --run ID``."""

    help = "By which prompts a judge works, their proofs, its agreement beside experts, attacks, cost and history."

    def add_arguments(self, parser: CommandParser) -> None:
        """Whose card, and how it is written."""
        parser.add_argument("judge", metavar="NAME", help="name of a judge, or 'baseline'")
        parser.add_argument(
            "--run", type=int, metavar="ID", help="run for which the scores of this judge were imported"
        )
        parser.add_argument("--project", default="", help="needed where there are several projects")
        parser.add_argument("--format", choices=["md", "json"], default="md")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it."""
        with refusals(self):
            if options["run"] is None:
                card = judge_prompts(judge_row(project_named(options["project"]), options["judge"]))
            else:
                card = imported_card(run_numbered(options["run"]), options["judge"])
        if options["format"] == "json":
            as_json(self, card.to_dict())
        else:
            self.stdout.write(as_markdown(card), ending="")
