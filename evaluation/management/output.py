"""What the commands of imports and runs print: tables on a terminal, plain lines elsewhere, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaluation.core.errors import ConcordError, InvalidFile, Problem, Refused
from evaluation.wording.messages import explain, explain_refusal

MOST_PROBLEMS = 1000


def add_format(parser: CommandParser) -> None:
    """``--format text|json``."""
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json for programs")


def problem_line(problem: Problem) -> str:
    """``file:line field message``, as compilers write it."""
    line = "" if problem.line is None else f":{problem.line}"
    place = " ".join(part for part in (f"{problem.file}{line}", problem.field) if part)
    sentence = explain(replace(problem, file="", line=None, field=""))
    return f"{place} {sentence}" if place else sentence


def refuse(command: BaseCommand, error: ConcordError) -> NoReturn:
    """Say on standard error what is wrong, one line for each problem of a file, and end with 1.

    :raises CommandError: always.
    """
    if isinstance(error, InvalidFile):
        for problem in error.problems[:MOST_PROBLEMS]:
            command.stderr.write(problem_line(problem), command.style.ERROR)
        raise CommandError(f"{len(error.problems)} problem(s); nothing was imported") from error
    raise CommandError(explain_refusal(error) if isinstance(error, Refused) else str(error)) from error


def remarks(command: BaseCommand, found: Iterable[Problem]) -> None:
    """Remarks go to standard error, so that standard output stays what was asked for."""
    for remark in found:
        command.stderr.write(problem_line(remark), command.style.WARNING)


def table(command: BaseCommand, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on a terminal; elsewhere one line for each row, its cells separated by tabs."""
    if not command.stdout.isatty():
        for row in rows:
            command.stdout.write("\t".join(map(str, row)))
        return
    shown = Table(*header)
    for row in rows:
        shown.add_row(*(Text(str(cell)) for cell in row))
    Console().print(shown)


def as_json(command: BaseCommand, value: Any) -> None:
    """One JSON document."""
    command.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str))
