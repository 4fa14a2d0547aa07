"""A header and rows of cells to a tree; CSV and workbooks share it."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.files.problems import Problems
from evaluation.files.tree import Kind, Node


def read_header(names: Sequence[str], problems: Problems, row: int = 1) -> list[str]:
    """The column names without surrounding white space; columns behind the last name are cut off.

    A name that is missing in between or stands twice is a problem.

    :raises InvalidFile: where the row has no name at all.
    """
    header = [name.strip() for name in names]
    while header and not header[-1]:
        header.pop()
    if not header:
        problems.stop("header_empty", row, column=1)
    seen: set[str] = set()
    for position, name in enumerate(header, start=1):
        if not name:
            problems.add("header_empty", row, column=position)
        elif name in seen:
            problems.add("header_twice", row, name, name=name)
        seen.add(name)
    return header


def row_node(header: Sequence[str], cells: Sequence[Node], row: int) -> Node:
    """One row as a map from column name to cell."""
    return Node(Kind.MAP, {name: cell for name, cell in zip(header, cells, strict=False) if name}, row)
