"""Run the shipped attacks against a judge."""

import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from contrib.attacks.checks import run_check
from contrib.attacks.models import AttackResult
from evaluation.judges.shipped import judge_row
from evaluation.management.output import add_format_option, command_errors, print_json, print_table
from evaluation.management.site_command import SiteCommand
from evaluation.messages.explanations import explain_reason
from evaluation.runs.selectors import get_project

FAILED = 100
CHECK_FIELDS = (
    "model_returned",
    "response_format",
    "rubric_hash",
    "attacks_hash",
    "attacks",
    "passed",
    "calls",
    "cost",
)
RESULT_FIELDS = ("language", "kind", "attack", "passed", "gate", "reason", "values", "broken")


class Command(SiteCommand):
    """``attack_judge NAME``: exit 0 if every attack is passed, 100 if some are not, 1 if the judge cannot be called."""

    help = "Run the shipped attacks and canaries, in Korean and English, against a judge and store the results."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("judge", metavar="NAME", help="name of a judge, or 'baseline'")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with command_errors(self):
            judge = judge_row(get_project(options["project"]), options["judge"])
        judge_check = run_check(judge)
        if judge_check.reason:
            raise CommandError(f"{judge}: {explain_reason(judge_check.reason)}")
        results = judge_check.results.order_by("language", "id")
        if options["format"] == "json":
            facts = {"judge": str(judge), "model": judge.model} | {
                name: getattr(judge_check, name) for name in CHECK_FIELDS
            }
            print_json(self, facts | {"results": list(results.values(*RESULT_FIELDS))})
        else:
            rows = [
                ("ok" if result.passed else "FAILED", result.language, result.kind, result.attack, _describe(result))
                for result in results
            ]
            print_table(self, ("", "language", "kind", "attack", "result"), rows)
            self.stdout.write(
                f"{judge}: {judge_check.passed} of {judge_check.attacks} passed, {judge_check.calls} calls"
            )
        if judge_check.passed < judge_check.attacks:
            sys.exit(FAILED)


def _describe(result: AttackResult) -> str:
    """Format the scores or the reason of their absence, and the broken bounds."""
    if result.gate:
        return f"by rule: {result.gate}"
    scores = ", ".join(f"{name} {'-' if value is None else f'{value:g}'}" for name, value in result.values.items())
    expected = "; ".join(f"{bound['metric']} {bound['rule']} {bound['bound']:g}" for bound in result.broken)
    return " ".join(part for part in (result.reason or scores, f"(expected: {expected})" if expected else "") if part)
