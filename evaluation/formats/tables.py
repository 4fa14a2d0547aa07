"""CSV and Excel workbooks to a parse tree: a header, and rows numbered as a spreadsheet shows them.

CSV parsing is strict about quotes and the number of cells. The first sheet of a workbook is read, guarded against
archive bombs and formulas."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeVar
from xml.etree import ElementTree as ET

from evaluation.core.errors import InvalidFile
from evaluation.formats.tree import Limits, Node, NodeKind, Problems, TreeBuilder
from evaluation.formats.xml_parts import Prolog, xml_prolog

RowT = TypeVar("RowT")

# A header is looked for within this many rows.
MAX_TITLE_ROWS = 20


def skip_titles(rows: Iterator[RowT], texts: Callable[[RowT], Sequence[str]], problems: Problems) -> Iterator[RowT]:
    """Return the rows from the header on; skipped rows are remarked.

    A title or note above the table fills only the first of several cells, and a row with more cells follows. Files of
    one column have no titles."""
    head: list[RowT] = []
    header = 0
    for row in islice(rows, MAX_TITLE_ROWS + 1):
        head.append(row)
        cells = texts(row)
        filled = [position for position, text in enumerate(cells) if text.strip()]
        if len(filled) > 1:
            header = len(head) - 1
        if filled and (filled != [0] or len(cells) == 1):
            break
    if header:
        problems.remark("titles_left_out", 1, rows=header)
    return chain(head[header:], rows)


def read_header(names: Sequence[str], problems: Problems, *, row: int = 1, may_be_blank: bool = False) -> list[str]:
    """Return the stripped column names; columns after the last name are cut off.

    A duplicate name is a problem, and a missing one in between unless it ``may_be_blank``.

    :raises InvalidFile: if the row has no name."""
    header = [name.strip() for name in names]
    while header and not header[-1]:
        header.pop()
    if not header:
        problems.stop("header_empty", row, column=1)
    seen_names: set[str] = set()
    for position, name in enumerate(header, start=1):
        # pandas leaves the name of its index empty; _without_index checks whether the column is one.
        if not name and (may_be_blank or position == 1):
            continue
        if not name:
            problems.add("header_empty", row, column=position)
        elif name in seen_names:
            problems.add("header_twice", row, name, name=name)
        seen_names.add(name)
    return header


def row_node(header: Sequence[str], cells: Sequence[Node], row: int) -> Node:
    return Node(NodeKind.MAP, dict(zip(header, cells, strict=False)), row)


# The csv module has one field limit for the whole process. The limits here are per file and report row and column, so
# the module's limit is lifted.
csv.field_size_limit(2**31 - 1)


class CsvTable:
    """Builds the nodes of rows below a header. A column without a name is left out if it is empty, and reported once
    otherwise; the first column may be pandas' index."""

    def __init__(self, builder: TreeBuilder) -> None:
        self.header: list[str] = []
        self._builder, self._header_row = builder, 0
        # Positions of columns without a name.
        self._nameless: set[int] = set()
        self._reported: set[int] = set()

    def read(self, cells: list[str], number: int) -> Node | None:
        """Build a row's node; ``None`` for the header, and for a blank or ragged row.

        :raises InvalidFile: for too many columns."""
        header, problems = self.header, self._builder.problems
        if not header:
            self.header, self._header_row = read_header(cells, problems, row=number, may_be_blank=True), number
            self._nameless = {position for position, name in enumerate(self.header) if position and not name}
            if len(self.header) > (limit := self._builder.limits.columns):
                problems.stop("too_many_columns", number, limit=limit)
            return None
        if self._nameless and len(cells) >= len(header):
            for position in sorted(self._nameless - self._reported):
                if cells[position].strip():
                    problems.add("header_empty", self._header_row, column=position + 1)
                    self._reported.add(position)
            header = [name for position, name in enumerate(header) if position not in self._nameless]
            cells = [cell for position, cell in enumerate(cells) if position not in self._nameless]
        return read_row(header, cells, number, self._builder) if any(cell.strip() for cell in cells) else None


def read_csv(text: str, problems: Problems, limits: Limits) -> Node:
    """Return the rows below the header as maps of cells; blank rows are skipped but counted.

    :raises InvalidFile: for an unclosed quote, or too many rows or columns. Ragged rows, header problems and overlong
    cells are collected."""
    text, delimiter = detect_delimiter(text, problems)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    table = CsvTable(TreeBuilder(problems, limits))
    nodes: list[Node] = []
    number = 0
    try:
        # Refuse the file before building nodes for hundreds of thousands of rows.
        if text.count("\n") > limits.rows:
            for number, _cells in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), start=1):
                if number > limits.rows:
                    problems.stop("too_many_rows", number, limit=limits.rows)
        for number, cells in skip_titles(enumerate(rows, start=1), itemgetter(1), problems):
            if number > limits.rows:
                problems.stop("too_many_rows", number, limit=limits.rows)
            if node := table.read(cells, number):
                nodes.append(node)
    except csv.Error as error:
        problems.stop("csv_syntax", number + 1, detail=str(error))
    return Node(NodeKind.LIST, _without_index(table.header, nodes, problems), 1)


def _without_index(header: Sequence[str], nodes: list[Node], problems: Problems) -> list[Node]:
    """Drop a nameless first column that counts the rows from 0, as pandas writes its index."""
    if not header or header[0]:
        return nodes
    if [node.entries[""].spelling.strip() for node in nodes] != [str(number) for number in range(len(nodes))]:
        problems.add("header_empty", 1, column=1)
    else:
        problems.remark("index_left_out", 1)
    return [node._replace(value={name: cell for name, cell in node.entries.items() if name}) for node in nodes]


def transpose_columns(root: Node) -> Node:
    """Convert a map of columns (row number -> value), as pandas' ``to_json`` writes, to rows; return other roots
    unchanged."""
    columns = root.entries
    keys = [list(column.entries) for column in columns.values()]
    if (
        not keys
        or not keys[0]
        or any(column_keys != keys[0] for column_keys in keys)
        or not all(map(str.isdecimal, keys[0]))
    ):
        return root
    rows = [
        Node(NodeKind.MAP, {name: column.entries[key] for name, column in columns.items()}, root.line)
        for key in keys[0]
    ]
    return Node(NodeKind.LIST, rows, root.line)


def read_row(header: list[str], cells: list[str], number: int, builder: TreeBuilder) -> Node | None:
    """Build a row's node. A ragged row is only noted, because its cells cannot be assigned to columns."""
    while len(cells) > len(header) and not cells[-1].strip():
        cells.pop()
    if len(cells) != len(header):
        builder.problems.add("ragged_row", number, found=len(cells), expected=len(header))
        return None
    for name, cell in zip(header, cells, strict=False):
        builder.make_storable(cell, number, name)
    return row_node(header, [Node(NodeKind.CELL, cell, number, cell) for cell in cells], number)


# Excel's separator line. Excel hides it, so rows are counted from the next line.
SEPARATOR_LINE = re.compile(r"\"?sep=([,;|\t])\"?[ ,;\t]*(?:\r\n|\r|\n)", re.IGNORECASE)


def detect_delimiter(text: str, problems: Problems) -> tuple[str, str]:
    """Return the text from its header on, and its delimiter.

    A line ``sep=;`` above the header decides, else the first of comma, tab and semicolon in the header. Other
    delimiters than the comma are remarked."""
    if match := SEPARATOR_LINE.match(text):
        text, delimiter = text[match.end() :], match[1]
    else:
        header = text.lstrip("\n").partition("\n")[0]
        delimiter = next((char for char in (",", "\t", ";") if char in header), ",")
    if delimiter != ",":
        problems.remark("delimiter", 1, delimiter="tab" if delimiter == "\t" else delimiter)
    return text, delimiter


def read_xlsx(data: bytes, problems: Problems, limits: Limits) -> Node:
    """Return the rows below the header of the first sheet as maps of cells; other sheets are remarked.

    :raises InvalidFile: if the workbook is broken, unpacks to too many bytes, or has too many rows or columns. Formulas
    and error cells are collected as problems, because the file may lack their current value."""
    # The import takes 0.2 s.
    import openpyxl

    problems.doubtful_kinds = {NodeKind.REAL}
    try:
        _check_archive(data, problems, limits)
        workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, keep_links=False)
        try:
            sheets = workbook.worksheets
            if not sheets:
                problems.stop("no_rows")
            if len(sheets) > 1:
                first, *other_titles = (sheet.title for sheet in sheets)
                problems.remark("sheets_not_read", sheet=first, sheets=", ".join(other_titles))
            # Read one column more than allowed, so that a cell beyond the limit is noticed.
            rows = sheets[0].iter_rows(max_col=limits.columns + 1)
            return _table(rows, problems, limits)
        finally:
            workbook.close()
    except InvalidFile:
        raise
    except Exception as error:  # noqa: BLE001 - a foreign parser on hostile bytes raises anything (KeyError, TypeError)
        problems.stop("workbook_broken", detail=f"{type(error).__name__}: {str(error)[:200]}")


# Tags of a cell with its value; tags of styles and lists of sheets, which openpyxl builds slowly; attributes of a tag.
_TAGS_PER_VALUE, MAX_OTHER_TAGS, MAX_ATTRIBUTES = 4, 100_000, 20_000
_LONG_TAG, _ATTRIBUTE = re.compile(rb"<[^<]{100000,}"), re.compile(rb"=\s*[\"']")
_DATA_TYPE = re.compile(r"\.(worksheet|sharedStrings)\+xml$")
_CONTENT_TYPES = "[Content_Types].xml"


def _check_archive(data: bytes, problems: Problems, limits: Limits) -> None:
    """Refuse archive bombs, entity declarations and masses of tags or attributes before openpyxl parses any XML.

    Every part is checked, because the workbook itself says which of them are parsed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > limits.members or sum(member.file_size for member in members) > limits.unpacked_bytes:
            problems.stop("workbook_too_large", limit=limits.unpacked_bytes)
        content_types: dict[str, set[str]] = {}
        for member in sorted(members, key=lambda member: member.filename != _CONTENT_TYPES):
            content = archive.read(member)
            prolog = xml_prolog(content)
            if prolog is Prolog.UNUSUAL:
                problems.stop("workbook_entities")
            if prolog is Prolog.NO_XML:
                continue
            tag_count = content.count(b"<")
            types = content_types.get(member.filename, {""})
            if all(map(_DATA_TYPE.search, types)):
                if tag_count > _TAGS_PER_VALUE * limits.nodes:
                    problems.stop("too_many_values", limit=limits.nodes)
            elif tag_count > MAX_OTHER_TAGS:
                problems.stop("workbook_broken", detail=f"{member.filename} has more than {MAX_OTHER_TAGS} tags")
            if any(len(_ATTRIBUTE.findall(tag[0])) > MAX_ATTRIBUTES for tag in _LONG_TAG.finditer(content)):
                problems.stop("workbook_broken", detail=f"{member.filename} has a tag with too many attributes")
            if member.filename == _CONTENT_TYPES:
                # Document types are refused above.
                for element in ET.fromstring(content):  # noqa: S314
                    name, content_type = element.get("PartName", "").lstrip("/"), element.get("ContentType", "")
                    content_types.setdefault(name, set()).add(content_type)


def _table(rows: Iterable[Any], problems: Problems, limits: Limits) -> Node:
    from openpyxl.cell.read_only import EMPTY_CELL

    builder = TreeBuilder(problems, limits)
    header: list[str] = []
    nodes: list[Node] = []
    for number, cells in skip_titles(enumerate(rows, start=1), _cell_texts, problems):
        if number > limits.rows:
            problems.stop("too_many_rows", number, limit=limits.rows)
        # A stray cell far down leaves hundreds of thousands of rows without cells.
        if header and set(map(id, cells)) == {id(EMPTY_CELL)}:
            continue
        row_cells = [_cell(cell, number, header, position, builder) for position, cell in enumerate(cells)]
        if not header:
            names = ["" if cell.absent else cell.spelling for cell in row_cells]
            header = read_header(names, problems, row=number)
            if len(header) > limits.columns:
                problems.stop("too_many_columns", number, limit=limits.columns)
            continue
        while len(row_cells) > len(header) and row_cells[-1].absent:
            row_cells.pop()
        if len(row_cells) > len(header):
            problems.add("ragged_row", number, found=len(row_cells), expected=len(header))
        if not all(cell.absent for cell in row_cells):
            nodes.append(row_node(header, row_cells, number))
    return Node(NodeKind.LIST, _without_index(header, nodes, problems), 1)


def _cell_texts(row: tuple[int, Sequence[Any]]) -> list[str]:
    return ["" if cell.value is None else str(cell.value) for cell in row[1]]


# Number of digits that Excel stores exactly.
_EXACT_DIGITS = 15
_PLAIN_FORMATS = {"General", "0", "#", "#,##0", "@"}


def _integer_cell(value: int, number_format: str, row: int) -> Node:
    """Read a whole number as the sheet displays it: ``0000`` displays 7 as ``0007``.

    Other formats (percent, money, decimals) display text that the value does not determine; such cells are ambiguous.
    """
    digits = str(value)
    if number_format.strip("0") == "":
        digits = digits.zfill(len(number_format))
    elif number_format not in _PLAIN_FORMATS:
        return Node(NodeKind.AMBIGUOUS, digits, row, digits)
    if len(digits) > _EXACT_DIGITS:
        return Node(NodeKind.AMBIGUOUS, digits, row, digits)
    return Node(NodeKind.INTEGER, value, row, digits)


def _cell(cell: Any, row: int, header: list[str], position: int, builder: TreeBuilder) -> Node:
    value = cell.value
    if value is None:
        return Node(NodeKind.CELL, "", row)
    field = header[position] if position < len(header) else ""
    if cell.data_type == "f":
        builder.problems.add("formula", row, field, cell=cell.coordinate)
        return Node(NodeKind.CELL, "", row)
    if cell.data_type == "e":
        builder.problems.add("error_cell", row, field, cell=cell.coordinate, value=str(value))
        return Node(NodeKind.CELL, "", row)
    if isinstance(value, bool):
        return Node(NodeKind.BOOLEAN, value, row, str(value).upper())
    if isinstance(value, int):
        return _integer_cell(value, cell.number_format, row)
    if isinstance(value, float):
        return Node(NodeKind.REAL, value, row, repr(value))
    if isinstance(value, datetime | date | time):
        return Node(NodeKind.AMBIGUOUS, value.isoformat(), row, value.isoformat())
    text = builder.make_storable(str(value), row, field)
    return Node(NodeKind.CELL, text, row, text)
