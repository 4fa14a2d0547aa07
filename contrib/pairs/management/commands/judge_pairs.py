"""Have a judge compare pairs of answers in both orders."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from rich.console import Console
from rich.progress import Progress

from contrib.pairs.judging import judge_pairs, spending_on
from contrib.pairs.making import pair_set_named
from evaluation.judges.shipping import judge_row
from evaluation.management.site_command import SiteCommand
from evaluation.messages.sentences import explain_reason
from evaluation.runs.progress import Spending
from review.management.options import refusals


class Command(SiteCommand):
    """``judge_pairs COMPARISON --judge NAME``; run again, it goes on where it stopped and asks again about pairs
    without a value."""

    help = "Have a judge compare the pairs of a comparison, each in both orders."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which comparison and which judge."""
        parser.add_argument("comparison", help="id or name of the comparison")
        parser.add_argument("--judge", default="", help="name of a judge; the project's own, else the offline baseline")
        parser.add_argument("--no-cache", action="store_true", help="make every call, paid for before or not")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare what has no value yet.

        :raises CommandError: where a person is needed, and when interrupted.
        """
        with refusals():
            found = pair_set_named(options["comparison"])
            judge = judge_row(found.project, options["judge"])
            console = Console(stderr=True)
            try:
                with Progress(console=console, disable=not console.is_terminal) as shown:
                    task = shown.add_task(str(judge), total=None)
                    done = judge_pairs(
                        found,
                        judge,
                        use_cache=not options["no_cache"],
                        told=lambda n, of: shown.update(task, completed=n, total=of),
                    )
            except KeyboardInterrupt:
                raise CommandError("interrupted; the same command goes on") from None
        self.stdout.write(f"{judge}: {done.done} pairs compared{_cost(spending_on(found, judge))}")
        if done.reason:
            raise CommandError(f"{done.left} pairs left: {explain_reason(done.reason)}")


def _cost(spent: Spending) -> str:
    """Of all calls of the judge about these pairs so far, those of earlier commands included."""
    if not spent.calls:
        return ""
    return f"; {spent.calls} calls so far, {'at least ' if spent.at_least else ''}${spent.known:.4f}"
