"""Tables for spreadsheets, with formulas made harmless, and JSON Lines without any change.

CSV and XLSX are for reading: a text that a spreadsheet would run gets an apostrophe in front. JSON Lines is the
lossless form.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from openpyxl import Workbook

Cell = str | int | float | bool | None
_STARTS_FORMULA = re.compile(r"[\s\u200b\u2060\ufeff]*[=+\-@＝＋－＠]|[\t\r\n]")
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_XLSX_CELL = 32_767  # characters; a longer cell makes the workbook unreadable
_CUT = " … [cut: the whole text is in the JSON Lines export]"
_ROWS_PER_CHUNK = 200


def neutral(cell: Cell) -> Cell:
    """The cell as a spreadsheet shows it and never runs it: a text that starts like a formula (``= + - @``, also in
    full width, also behind white space; a tab or line break) gets an apostrophe. Numbers stay numbers."""
    if isinstance(cell, str) and _STARTS_FORMULA.match(cell):
        return "'" + cell
    return cell


def csv_chunks(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    """The table as CSV in UTF-8 with a byte order mark (spreadsheets need it for Hangul), a part at a time, so that
    memory does not grow with the rows. ``None`` is an empty cell."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    buffer.write("\ufeff")
    writer.writerow([neutral(name) for name in header])
    for number, row in enumerate(rows, start=1):
        writer.writerow([neutral(cell) for cell in row])
        if number % _ROWS_PER_CHUNK == 0:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def xlsx_bytes(sheets: Mapping[str, tuple[Sequence[str], Iterable[Sequence[Cell]]]]) -> bytes:
    """A workbook: each sheet by its name (at most 31 characters count) with header and rows.

    Characters that XML cannot hold become U+FFFD; a text beyond Excel's 32,767 characters is cut, visibly.
    """
    workbook = Workbook(write_only=True)
    for name, (header, rows) in sheets.items():
        sheet = workbook.create_sheet(re.sub(r"[\\/*?:\[\]]", "_", name)[:31])
        sheet.freeze_panes = "A2"  # the header stays in sight
        sheet.append([_xlsx_cell(title) for title in header])
        for row in rows:
            sheet.append([_xlsx_cell(cell) for cell in row])
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def _xlsx_cell(cell: Cell) -> Cell:
    safe = neutral(cell)
    if not isinstance(safe, str):
        return safe
    text = _NOT_IN_XML.sub("\ufffd", safe)
    return text if len(text) <= _XLSX_CELL else text[: _XLSX_CELL - len(_CUT)] + _CUT


def json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One JSON object per line, verbatim.

    :raises ValueError: for NaN and infinity, which are no JSON.
    """
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
