"""Tables of texts as commands print them: drawn on a terminal, else tab-separated lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import category

from django.core.management.base import OutputWrapper

if TYPE_CHECKING:
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
    if _is_terminal(out):
        from rich.console import Console  # costs 0.1 s at import

        console = Console()
        for sheet in sheets:
            for table in drawn(sheet, console.width):
                console.print(table)
        return
    for sheet in sheets:
        out.write(f"# {visible(sheet.title)}\n")
        for row in (sheet.header, *sheet.rows):
            out.write("\t".join(visible(" ".join(cell.split())) for cell in row) + "\n")
        out.write("\n")


def number(value: float | None, digits: int = 3) -> str:
    """A figure as it is shown; a dash where there is none."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def _is_terminal(out: OutputWrapper) -> bool:
    """Whether the command writes to this process's terminal, and not into a file, a pipe or a test."""
    return out._out is sys.stdout and out.isatty()


_BORDERS = 3  # a column's frame and the blank on either side, in characters
_EMPTY = frozenset(("", NOTHING))


def drawn(sheet: Sheet, width: int) -> Iterator[Table]:
    """The sheet as tables of at most so many characters, each beginning with the first column: no word is cut to an
    ellipsis, so that long names stay apart. Columns in which nothing stands are left out."""
    from rich.cells import cell_len
    from rich.markup import escape
    from rich.table import Table

    rows = [tuple(map(visible, row)) for row in sheet.rows]
    kept = [p for p in range(len(sheet.header)) if p == 0 or any(row[p] not in _EMPTY for row in rows)]
    columns = {p: [visible(sheet.header[p]), *(row[p] for row in rows)] for p in kept}
    widest = {p: max(map(cell_len, column)) for p, column in columns.items()}
    widest[0] = min(widest[0], width // 2)
    room = width - 1 - widest[0] - _BORDERS
    longest = {
        p: min(max((cell_len(word) for cell in columns[p] for word in cell.split()), default=1), room - _BORDERS)
        for p in kept[1:]
    }
    title = escape(visible(sheet.title))
    for part in _fitting(kept[1:], longest, room):
        table = Table(title=title, title_justify="left")
        table.add_column(escape(columns[0][0]), overflow="fold", width=widest[0])
        spare = room - sum(longest[p] + _BORDERS for p in part)
        for p in part:
            more = min(spare, max(widest[p] - longest[p], 0))
            spare -= more
            name, taken = escape(columns[p][0]), longest[p] + more
            table.add_column(name, justify="right" if p >= sheet.numbers_from else "left", overflow="fold", width=taken)
        for row in rows:
            table.add_row(*(escape(row[p]) for p in (0, *part)))
        yield table


def _fitting(positions: Sequence[int], longest: Mapping[int, int], width: int) -> Iterator[list[int]]:
    """The columns in as few groups, in order, as have room for their longest words side by side."""
    part: list[int] = []
    taken = 0
    for position in positions:
        need = longest[position] + _BORDERS
        if part and taken + need > width:
            yield part
            part, taken = [], 0
        part.append(position)
        taken += need
    yield part


def visible(text: str) -> str:
    """The text with control characters written out (``\\x1b``): categories and names come from uploaded files, and a
    terminal would obey them. Lines are kept."""
    return "".join(f"\\x{ord(c):02x}" if category(c) == "Cc" and c != "\n" else c for c in text)
