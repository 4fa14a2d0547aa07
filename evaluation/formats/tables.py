"""CSV and Excel workbooks to a tree: a header, and rows of cells numbered as a spreadsheet shows them.

CSV is strict about quotes and the number of cells; of a workbook the first sheet is read, with guards against bombs and
formulas.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from typing import Any

from evaluation.core.errors import InvalidFile
from evaluation.formats.tree import Kind, Limits, Node, Problems, TreeBuilder


def read_header(names: Sequence[str], problems: Problems) -> list[str]:
    """The column names without surrounding white space; columns behind the last name are cut off.

    A name that is missing in between or stands twice is a problem.

    :raises InvalidFile: where the row has no name at all.
    """
    header = [name.strip() for name in names]
    while header and not header[-1]:
        header.pop()
    if not header:
        problems.stop("header_empty", 1, column=1)
    seen: set[str] = set()
    for position, name in enumerate(header, start=1):
        if not name and position == 1:  # pandas writes its index so; _without_index looks whether it is one
            continue
        if not name:
            problems.add("header_empty", 1, column=position)
        elif name in seen:
            problems.add("header_twice", 1, name, name=name)
        seen.add(name)
    return header


def row_node(header: Sequence[str], cells: Sequence[Node], row: int) -> Node:
    """One row as a map from column name to cell."""
    return Node(Kind.MAP, dict(zip(header, cells, strict=False)), row)


# The module's own cap on a field is one number for the whole process. Ours are per file (bytes before, characters
# after the reading) and come with a row and a column, so the module's is lifted once and for all.
csv.field_size_limit(2**31 - 1)


def read_csv(text: str, problems: Problems, limits: Limits) -> Node:
    """The rows below the header as maps of cells; blank rows are skipped but counted.

    :raises InvalidFile: where quotes are not closed, or there are too many rows or columns. Ragged rows, an odd
        header and overlong cells are collected.
    """
    text, delimiter = delimiter_of(text, problems)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    builder = TreeBuilder(problems, limits)
    header: list[str] = []
    nodes: list[Node] = []
    number = 0
    try:
        if text.count("\n") > limits.rows:  # to be refused before nodes are made of a hundred thousand rows
            for number, _cells in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), start=1):
                if number > limits.rows:
                    problems.stop("too_many_rows", number, limit=limits.rows)
        for number, cells in enumerate(rows, start=1):
            if number > limits.rows:
                problems.stop("too_many_rows", number, limit=limits.rows)
            if number == 1:
                header = read_header(cells, problems)
                if len(header) > limits.columns:
                    problems.stop("too_many_columns", 1, limit=limits.columns)
            elif any(cell.strip() for cell in cells) and (node := read_row(header, cells, number, builder)):
                nodes.append(node)
    except csv.Error as error:
        problems.stop("csv_syntax", number + 1, detail=str(error))
    return Node(Kind.LIST, _without_index(header, nodes, problems), 1)


def _without_index(header: Sequence[str], nodes: list[Node], problems: Problems) -> list[Node]:
    """The rows without a first column that has no name and counts them from 0, as pandas writes its index."""
    if not header or header[0]:
        return nodes
    if [node.entries[""].spelling.strip() for node in nodes] != [str(number) for number in range(len(nodes))]:
        problems.add("header_empty", 1, column=1)
    else:
        problems.remark("index_left_out", 1)
    return [node._replace(value={name: cell for name, cell in node.entries.items() if name}) for node in nodes]


def rows_of_columns(root: Node) -> Node:
    """The rows of a map of columns, each a map from the row's number to its value, as pandas' ``to_json`` writes a
    table; anything else unchanged."""
    columns = root.entries
    keys = [list(column.entries) for column in columns.values()]
    if not keys or not keys[0] or any(one != keys[0] for one in keys) or not all(map(str.isdecimal, keys[0])):
        return root
    rows = [
        Node(Kind.MAP, {name: column.entries[key] for name, column in columns.items()}, root.line) for key in keys[0]
    ]
    return Node(Kind.LIST, rows, root.line)


def read_row(header: list[str], cells: list[str], number: int, builder: TreeBuilder) -> Node | None:
    """The row's node. A ragged row is only noted: nobody knows which of its cells belongs to which column."""
    while len(cells) > len(header) and not cells[-1].strip():
        cells.pop()
    if len(cells) != len(header):
        builder.problems.add("ragged_row", number, found=len(cells), expected=len(header))
        return None
    for name, cell in zip(header, cells, strict=False):
        builder.storable(cell, number, name)
    return row_node(header, [Node(Kind.CELL, cell, number, cell) for cell in cells], number)


# Tells Excel what separates the cells; Excel does not show the line, so rows are counted from the next one.
SEPARATOR_LINE = re.compile(r"\"?sep=([,;|\t])\"?[ ,;\t]*(?:\r\n|\r|\n)", re.IGNORECASE)


def delimiter_of(text: str, problems: Problems) -> tuple[str, str]:
    """The text from its header on, and what separates the cells: what a line ``sep=;`` above the header says, else the
    comma, or what stands in the header instead of it, a tab or a semicolon. Anything but a comma is remarked."""
    if match := SEPARATOR_LINE.match(text):
        text, delimiter = text[match.end() :], match[1]
    else:
        header = text.lstrip("\n").partition("\n")[0]
        delimiter = next((sign for sign in (",", "\t", ";") if sign in header), ",")
    if delimiter != ",":
        problems.remark("delimiter", 1, delimiter="tab" if delimiter == "\t" else delimiter)
    return text, delimiter


def read_xlsx(data: bytes, problems: Problems, limits: Limits) -> Node:
    """The rows below the header of the first sheet as maps of cells; the names of further sheets are remarked.

    :raises InvalidFile: where the workbook is broken, unpacks to too much, or has too many rows or columns.
        Formulas and error cells are collected: what they show is not in the file for certain.
    """
    import openpyxl  # costs 0.2 s at import

    problems.doubted = {Kind.REAL}
    try:
        _guard(data, problems, limits)
        workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, keep_links=False)
        try:
            sheets = workbook.worksheets
            if not sheets:
                problems.stop("no_rows")
            if len(sheets) > 1:
                first, *others = (sheet.title for sheet in sheets)
                problems.remark("sheets_not_read", sheet=first, sheets=", ".join(others))
            # One column more than allowed, so that a cell beyond the limit is seen and not cut off.
            rows = sheets[0].iter_rows(max_col=limits.columns + 1)
            return _table(rows, problems, limits)
        finally:
            workbook.close()
    except InvalidFile:
        raise
    except Exception as error:  # noqa: BLE001 - a foreign parser on hostile bytes raises anything (KeyError, TypeError)
        problems.stop("workbook_broken", detail=f"{type(error).__name__}: {str(error)[:200]}")


def _guard(data: bytes, problems: Problems, limits: Limits) -> None:
    """Refuse what unpacks to too much and what declares entities, before any XML is parsed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > limits.members or sum(member.file_size for member in members) > limits.inflated:
            problems.stop("workbook_too_large", limit=limits.inflated)
        for member in members:
            if not member.filename.endswith((".xml", ".rels")):
                continue
            content = archive.read(member)
            if b"<!DOCTYPE" in content or b"<!ENTITY" in content or content[:2] in {b"\xff\xfe", b"\xfe\xff"}:
                problems.stop("workbook_entities")


def _table(rows: Iterable[Any], problems: Problems, limits: Limits) -> Node:
    builder = TreeBuilder(problems, limits)
    header: list[str] = []
    nodes: list[Node] = []
    for number, cells in enumerate(rows, start=1):
        if number > limits.rows:
            problems.stop("too_many_rows", number, limit=limits.rows)
        read = [_cell(cell, number, header, position, builder) for position, cell in enumerate(cells)]
        if number == 1:
            header = read_header(["" if cell.absent else cell.spelling for cell in read], problems)
            if len(header) > limits.columns:
                problems.stop("too_many_columns", 1, limit=limits.columns)
            continue
        while len(read) > len(header) and read[-1].absent:
            read.pop()
        if len(read) > len(header):
            problems.add("ragged_row", number, found=len(read), expected=len(header))
        if not all(cell.absent for cell in read):
            nodes.append(row_node(header, read, number))
    return Node(Kind.LIST, _without_index(header, nodes, problems), 1)


_EXACT_DIGITS = 15  # that Excel keeps of a number
_PLAIN_FORMATS = {"General", "0", "#", "#,##0", "@"}


def _integer_cell(value: int, number_format: str, row: int) -> Node:
    """A whole number as the sheet shows it: ``0000`` shows 7 as ``0007``. In other formats (percent, money, decimals)
    the sheet shows another text than the digits, which nobody can tell from the value."""
    digits = str(value)
    if number_format.strip("0") == "":
        digits = digits.zfill(len(number_format))
    elif number_format not in _PLAIN_FORMATS:
        return Node(Kind.AMBIGUOUS, digits, row, digits)
    if len(digits) > _EXACT_DIGITS:
        return Node(Kind.AMBIGUOUS, digits, row, digits)
    return Node(Kind.INTEGER, value, row, digits)


def _cell(cell: Any, row: int, header: list[str], position: int, builder: TreeBuilder) -> Node:
    value = cell.value
    if value is None:
        return Node(Kind.CELL, "", row)
    field = header[position] if position < len(header) else ""
    if cell.data_type == "f":
        builder.problems.add("formula", row, field, cell=cell.coordinate)
        return Node(Kind.CELL, "", row)
    if cell.data_type == "e":
        builder.problems.add("error_cell", row, field, cell=cell.coordinate, value=str(value))
        return Node(Kind.CELL, "", row)
    if isinstance(value, bool):
        return Node(Kind.BOOLEAN, value, row, str(value).upper())
    if isinstance(value, int):
        return _integer_cell(value, cell.number_format, row)
    if isinstance(value, float):
        return Node(Kind.REAL, value, row, repr(value))
    if isinstance(value, datetime | date | time):
        return Node(Kind.AMBIGUOUS, value.isoformat(), row, value.isoformat())
    text = builder.storable(str(value), row, field)
    return Node(Kind.CELL, text, row, text)
