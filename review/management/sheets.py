"""Tables of commands: drawn on a terminal, otherwise tab-separated."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import category

from django.core.management.base import OutputWrapper

if TYPE_CHECKING:
    from rich.table import Table

DASH = "–"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A titled table; columns from ``numbers_from`` on are right-aligned."""

    title: str
    header: Sequence[str]
    rows: Iterable[Sequence[str]]
    numbers_from: int = 1


def write(out: OutputWrapper, sheets: Iterable[Sheet]) -> None:
    """Print the tables."""
    if _is_terminal(out):
        # Importing Rich costs 0.1 s.
        from rich.console import Console

        console = Console()
        for sheet in sheets:
            for table in render_tables(sheet, console.width):
                console.print(table)
        return
    for sheet in sheets:
        out.write(f"# {escape_control_characters(sheet.title)}\n")
        for row in (sheet.header, *sheet.rows):
            out.write("\t".join(escape_control_characters(" ".join(cell.split())) for cell in row) + "\n")
        out.write("\n")


def number(value: float | None, digits: int = 3) -> str:
    """Format a figure; a dash for ``None``."""
    return DASH if value is None else f"{value:.{digits}f}"


def _is_terminal(out: OutputWrapper) -> bool:
    """Return whether the command writes to this process's terminal, not to a file, a pipe or a test."""
    return out._out is sys.stdout and out.isatty()


# A column's border and the blank on either side, in characters.
_BORDERS = 3
_EMPTY = frozenset(("", DASH))


def render_tables(sheet: Sheet, width: int) -> Iterator[Table]:
    """Split a sheet into tables that fit the width, each starting with the first column.

    No word is truncated, so that long names stay distinct. Empty columns are left out."""
    from rich.cells import cell_len
    from rich.markup import escape
    from rich.table import Table

    rows = [tuple(map(escape_control_characters, row)) for row in sheet.rows]
    positions = [p for p in range(len(sheet.header)) if p == 0 or any(row[p] not in _EMPTY for row in rows)]
    columns = {p: [escape_control_characters(sheet.header[p]), *(row[p] for row in rows)] for p in positions}
    widest = {p: max(map(cell_len, column)) for p, column in columns.items()}
    widest[0] = min(widest[0], width // 2)
    room = width - 1 - widest[0] - _BORDERS
    longest = {
        p: min(max((cell_len(word) for cell in columns[p] for word in cell.split()), default=1), room - _BORDERS)
        for p in positions[1:]
    }
    title = escape(escape_control_characters(sheet.title))
    for group in _column_groups(positions[1:], longest, room):
        table = Table(title=title, title_justify="left")
        table.add_column(escape(columns[0][0]), overflow="fold", width=widest[0])
        spare = room - sum(longest[p] + _BORDERS for p in group)
        for p in group:
            extra = min(spare, max(widest[p] - longest[p], 0))
            spare -= extra
            name, column_width = escape(columns[p][0]), longest[p] + extra
            table.add_column(
                name, justify="right" if p >= sheet.numbers_from else "left", overflow="fold", width=column_width
            )
        for row in rows:
            table.add_row(*(escape(row[p]) for p in (0, *group)))
        yield table


def _column_groups(positions: Sequence[int], longest: Mapping[int, int], width: int) -> Iterator[list[int]]:
    """Group the columns, in order, so that each group has room for its longest words."""
    group: list[int] = []
    used = 0
    for position in positions:
        need = longest[position] + _BORDERS
        if group and used + need > width:
            yield group
            group, used = [], 0
        group.append(position)
        used += need
    yield group


def escape_control_characters(text: str) -> str:
    r"""Escape control characters (``\x1b``), because names come from uploaded files and would control the terminal.

    Line breaks are kept."""
    return "".join(f"\\x{ord(c):02x}" if category(c) == "Cc" and c != "\n" else c for c in text)
