"""Have a judge compare pairs of answers in both orders."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from rich.console import Console
from rich.progress import Progress

from evaluation.shipping import judge_row
from review.management.asking import refusals
from review.management.pair_sets import pair_set_named
from review.pairing.judging import judge_pairs


class Command(BaseCommand):
    """``judge_pairs COMPARISON --judge NAME``; run again, it goes on where it stopped."""

    help = "Have a judge compare the pairs of a comparison, each in both orders."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which comparison and which judge."""
        parser.add_argument("comparison", help="id or name of the comparison")
        parser.add_argument("--judge", default="", help="name of a judge; the project's own, else the offline baseline")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare what has no value yet."""
        with refusals():
            found = pair_set_named(options["comparison"])
            judge = judge_row(found.project, options["judge"])
            console = Console(stderr=True)
            with Progress(console=console, disable=not console.is_terminal) as shown:
                task = shown.add_task(str(judge), total=None)
                done = judge_pairs(found, judge, told=lambda n, of: shown.update(task, completed=n, total=of))
        self.stdout.write(f"{judge}: {done} pairs compared")
