"""CSV to a tree: strict about quotes and the number of cells, rows numbered as a spreadsheet shows them."""

from __future__ import annotations

import csv
import io

from evaluation.files.limits import Limits
from evaluation.files.problems import Problems
from evaluation.files.table_rows import read_header, row_node
from evaluation.files.tree import Kind, Node
from evaluation.files.tree_builder import TreeBuilder

# The module's own cap on a field is one number for the whole process. Ours are per file (bytes before, characters
# after the reading) and come with a row and a column, so the module's is lifted once and for all.
csv.field_size_limit(2**31 - 1)


def read_csv(text: str, problems: Problems, limits: Limits) -> Node:
    """The rows below the header as maps of cells; blank rows are skipped but counted.

    :raises InvalidFile: where quotes are not closed, or there are too many rows or columns. Ragged rows, an odd
        header and overlong cells are collected.
    """
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text, problems), strict=True)
    builder = TreeBuilder(problems, limits)
    header: list[str] = []
    nodes: list[Node] = []
    number = 0
    try:
        for number, cells in enumerate(rows, start=1):
            if number > limits.rows:
                problems.stop("too_many_rows", number, limit=limits.rows)
            if number == 1:
                header = read_header(cells, problems)
                if len(header) > limits.columns:
                    problems.stop("too_many_columns", 1, limit=limits.columns)
            elif any(cell.strip() for cell in cells):
                _row(header, cells, number, builder, nodes)
    except csv.Error as error:
        problems.stop("csv_syntax", number + 1, detail=str(error))
    return Node(Kind.LIST, nodes, 1)


def _row(header: list[str], cells: list[str], number: int, builder: TreeBuilder, nodes: list[Node]) -> None:
    """Add the row's node. A ragged row is only noted: nobody knows which of its cells belongs to which column."""
    while len(cells) > len(header) and not cells[-1].strip():
        cells.pop()
    if len(cells) != len(header):
        builder.problems.add("ragged_row", number, found=len(cells), expected=len(header))
        return
    for name, cell in zip(header, cells, strict=False):
        builder.storable(cell, number, name)
    nodes.append(row_node(header, [Node(Kind.CELL, cell, number, cell) for cell in cells], number))


def _delimiter(text: str, problems: Problems) -> str:
    """The comma, or what stands in the header row instead of it: a tab or a semicolon (remarked)."""
    header = text.lstrip("\n").partition("\n")[0]
    if "," in header:
        return ","
    for delimiter in ("\t", ";"):
        if delimiter in header:
            problems.remark("delimiter", 1, delimiter="tab" if delimiter == "\t" else delimiter)
            return delimiter
    return ","
