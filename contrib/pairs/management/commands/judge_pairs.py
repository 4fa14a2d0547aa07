"""Have a judge compare pairs of answers in both orders."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from rich.console import Console
from rich.progress import Progress

from contrib.pairs.judging import judge_pairs, judge_spending
from contrib.pairs.services import find_pair_set
from evaluation.judges.shipped import judge_row
from evaluation.management.site_command import SiteCommand
from evaluation.messages.explanations import explain_reason
from evaluation.runs.progress import Spending
from review.management.options import command_errors


class Command(SiteCommand):
    """``judge_pairs COMPARISON --judge NAME``; a repeated call resumes and asks again about pairs without a value."""

    help = "Have a judge compare the pairs of a comparison, each in both orders."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("comparison", help="id or name of the comparison")
        parser.add_argument("--judge", default="", help="name of the judge; default: the project's")
        parser.add_argument("--no-cache", action="store_true", help="make every call, even if a cached reply exists")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare all pairs without a value.

        :raises CommandError: if a person is needed, and on interrupt."""
        with command_errors():
            pair_set = find_pair_set(options["comparison"])
            judge = judge_row(pair_set.project, options["judge"])
            console = Console(stderr=True)
            try:
                with Progress(console=console, disable=not console.is_terminal) as progress:
                    task = progress.add_task(str(judge), total=None)
                    result = judge_pairs(
                        pair_set,
                        judge,
                        use_cache=not options["no_cache"],
                        on_progress=lambda n, total: progress.update(task, completed=n, total=total),
                    )
            except KeyboardInterrupt:
                raise CommandError("Interrupted. Repeat the command to resume.") from None
        self.stdout.write(f"{judge}: {result.compared} pairs compared{_cost(judge_spending(pair_set, judge))}")
        if result.reason:
            raise CommandError(f"{result.remaining} pairs left: {explain_reason(result.reason)}")


def _cost(spending: Spending) -> str:
    """Cost of all calls of the judge about these pairs, earlier commands included."""
    if not spending.calls:
        return ""
    return f"; {spending.calls} calls so far, {'at least ' if spending.at_least else ''}${spending.known:.4f}"
