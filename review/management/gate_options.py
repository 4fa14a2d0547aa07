"""The options of a quality gate, as several commands take them, and what they print of it."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evaluation.core.errors import Refused
from evaluation.models import Run
from evaluation.wording.messages import explain_refusal
from review.comparisons.gating import GateAsked, checked
from review.management.asking import run_named
from review.reports.gate import Gate, GateOn, gate_line, gate_reasons
from review.statistics.paired_tests.gate import GateVerdict


def add_gate_arguments(parser: CommandParser, *, baseline: bool = True) -> None:
    """``--fail-under``, ``--baseline`` (unless the command has one of its own) with ``--max-drop``, ``--gate-on``,
    ``--across-models``, ``--strict``."""
    gate = parser.add_argument_group("quality gate", "exit 100 when it is not passed")
    gate.add_argument("--fail-under", type=_number, metavar="X", help="least overall score, such as 0.7")
    if baseline:
        gate.add_argument("--baseline", type=int, metavar="RUN", help="run that this one must not fall behind")
    gate.add_argument("--max-drop", type=_number, metavar="D", help="largest drop against the baseline, such as 0.02")
    gate.add_argument(
        "--gate-on",
        choices=[str(one) for one in GateOn],
        default="",
        help="score the gate looks at; the corrected one where it is offered, else judge-only",
    )
    gate.add_argument(
        "--across-models",
        action="store_true",
        help="measure the drop of judge-only scores although different models answered under a judge's name",
    )
    gate.add_argument("--strict", action="store_true", help="what cannot be told fails too")


def gate_asked(options: dict[str, Any], baseline: Run | None = None) -> GateAsked:
    """What the options ask for; ``baseline`` is the one of a command that has its own.

    :raises CommandError: exit code 2, for options that do not go together and a baseline that does not exist.
    """
    asked = GateAsked(
        fail_under=options["fail_under"],
        baseline=baseline or (None if options.get("baseline") is None else run_named(options["baseline"])),
        max_drop=options["max_drop"],
        on=options["gate_on"],
        strict=options["strict"],
        across_models=options["across_models"],
    )
    try:
        return checked(asked)
    except Refused as error:
        raise CommandError(explain_refusal(error), returncode=2) from error


def print_gate(command: BaseCommand, gate: Gate, run: int | None = None) -> None:
    """Which score the gate looks at and what it says, and the reasons; ``run`` names it among several."""
    command.stdout.write(gate_line(gate, run))
    for reason in gate_reasons(gate):
        command.stdout.write(f"  {reason}")
    command.stdout.write("")


def warn_of_gate(command: BaseCommand, gate: Gate, run: int | None = None) -> None:
    """On standard error: that the gate is open, although the command ends well."""
    if gate.verdict is GateVerdict.CANNOT_TELL and not gate.strict:
        command.stderr.write(gate_line(gate, run), command.style.WARNING)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is no number") from None
    if not math.isfinite(value):
        raise ArgumentTypeError(f"{text} is no number")
    return value
