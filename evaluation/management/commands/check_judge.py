"""Put a judge to the shipped attacks."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evaluation.core.errors import ConcordError
from evaluation.extras.attacks.checking import check
from evaluation.judges.shipping import judge_row
from evaluation.management.working import add_format, as_json, refuse, table
from evaluation.models import AttackResult, JudgeCheck
from evaluation.runs.making import project_named
from evaluation.wording.messages import explain_reason
from evaluation.work.plugins import require

FAILED = 100


class Command(BaseCommand):
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
        try:
            require("attacks")
            judge = judge_row(project_named(options["project"]), options["judge"])
        except ConcordError as error:
            refuse(self, error)
        done = check(judge)
        if done.reason:
            raise CommandError(f"{judge}: {explain_reason(done.reason)}")
        results = list(done.results.order_by("language", "id"))
        if options["format"] == "json":
            as_json(self, _facts(done))
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


def _facts(done: JudgeCheck) -> dict[str, Any]:
    judge = done.judge_version
    return {
        "judge": str(judge),
        "model": judge.model,
        "model_returned": done.model_returned,
        "rung": done.rung,
        "rubric_hash": done.rubric_hash,
        "attacks_hash": done.attacks_hash,
        "attacks": done.attacks,
        "passed": done.passed,
        "calls": done.calls,
        "cost": done.cost,
        "results": [
            {
                "language": one.language,
                "kind": one.kind,
                "attack": one.attack,
                "passed": one.passed,
                "gate": one.gate,
                "reason": one.reason,
                "values": one.values,
                "broken": one.broken,
            }
            for one in done.results.order_by("language", "id")
        ],
    }
