"""Put a judge to the shipped attacks."""

import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from contrib.attacks.checking import check
from contrib.attacks.models import AttackResult
from evaluation.judges.shipping import judge_row
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json, refusals, table
from evaluation.messages.sentences import explain_reason
from evaluation.runs.selectors import project_named

FAILED = 100
TOLD = ("model_returned", "rung", "rubric_hash", "attacks_hash", "attacks", "passed", "calls", "cost")
TOLD_OF_EACH = ("language", "kind", "attack", "passed", "gate", "reason", "values", "broken")


class Command(SiteCommand):
    """``check_judge NAME``: exit 0 when every attack is passed, 100 when some are not, 1 when the judge cannot be
    asked."""

    help = "Put a judge to the shipped attacks and canaries in Korean and English, and keep how it took them."

    def add_arguments(self, parser: CommandParser) -> None:
        """The judge."""
        parser.add_argument("judge", metavar="NAME", help="name of a judge, or 'baseline'")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the calls, print the results."""
        with refusals(self):
            judge = judge_row(project_named(options["project"]), options["judge"])
        done = check(judge)
        if done.reason:
            raise CommandError(f"{judge}: {explain_reason(done.reason)}")
        results = done.results.order_by("language", "id")
        if options["format"] == "json":
            facts = {"judge": str(judge), "model": judge.model} | {name: getattr(done, name) for name in TOLD}
            as_json(self, facts | {"results": list(results.values(*TOLD_OF_EACH))})
        else:
            rows = [("ok" if o.passed else "FAILED", o.language, o.kind, o.attack, _how(o)) for o in results]
            table(self, ("", "language", "kind", "attack", "how"), rows)
            self.stdout.write(f"{judge}: {done.passed} of {done.attacks} passed, {done.calls} calls")
        if done.passed < done.attacks:
            sys.exit(FAILED)


def _how(one: AttackResult) -> str:
    """The scores, or why there are none; what was due where a bound was broken."""
    if one.gate:
        return f"by rule: {one.gate}"
    given = ", ".join(f"{name} {'-' if value is None else f'{value:g}'}" for name, value in one.values.items())
    due = "; ".join(f"{b['metric']} {b['rule']} {b['bound']:g}" for b in one.broken)
    return " ".join(part for part in (one.reason or given, f"(due: {due})" if due else "") if part)
