"""Tables of commands: drawn on a terminal, plain tab-separated lines otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.core.management.base import OutputWrapper
from rich.console import Console
from rich.markup import escape
from rich.table import Table

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A titled table of texts; columns from ``numbers_from`` on are aligned to the right."""

    title: str
    header: Sequence[str]
    rows: Iterable[Sequence[str]]
    numbers_from: int = 1


def write(out: OutputWrapper, sheets: Iterable[Sheet]) -> None:
    """Print the tables."""
    console = Console() if _is_terminal(out) else None
    for sheet in sheets:
        if console:
            console.print(_drawn(sheet))
        else:
            out.write(f"# {sheet.title}\n")
            for row in (sheet.header, *sheet.rows):
                out.write("\t".join(" ".join(cell.split()) for cell in row) + "\n")
            out.write("\n")


def number(value: float | None, digits: int = 3) -> str:
    """A figure as it is shown; a dash where there is none."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def _is_terminal(out: OutputWrapper) -> bool:
    """Whether the command writes to this process's terminal, and not into a file, a pipe or a test."""
    return out._out is sys.stdout and out.isatty()


def _drawn(sheet: Sheet) -> Table:
    table = Table(title=escape(sheet.title), title_justify="left")
    for position, name in enumerate(sheet.header):
        table.add_column(escape(name), justify="right" if position >= sheet.numbers_from else "left")
    for row in sheet.rows:
        table.add_row(*(escape(cell) for cell in row))
    return table
