"""The formats that files are written in, each listed once, and how a thing says which of them it can be written in;
tables for spreadsheets, with formulas made harmless, and JSON Lines without any change.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, ParamSpec

from evaluation.core.errors import UnknownName

Of = ParamSpec("Of")


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format: its name in addresses and REST, the ending of its files, its media type."""

    name: str
    ending: str
    media_type: str


FORMATS = {
    one.name: one
    for one in (
        ExportFormat("json", "json", "application/json"),
        ExportFormat("jsonl", "jsonl", "application/x-ndjson"),
        ExportFormat("csv", "csv", "text/csv; charset=utf-8"),
        ExportFormat("xlsx", "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ExportFormat("html", "html", "text/html; charset=utf-8"),
        ExportFormat("junit", "xml", "application/xml"),
        ExportFormat("md", "md", "text/markdown; charset=utf-8"),
        ExportFormat("experiment", "yaml", "application/yaml"),
        ExportFormat("label_studio", "json", "application/json"),
        ExportFormat("label_studio_config", "xml", "application/xml"),
    )
}


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file as bytes, a part at a time, under a suggested name; ``made_at`` where what it tells was made before."""

    file_name: str
    media_type: str
    chunks: Iterator[bytes]
    made_at: datetime | None = None


class Exports(Generic[Of]):
    """What a thing can be written as: for each of its formats, by name, the function that writes it. ``about`` tells
    in refusals what it is, with its article."""

    def __init__(self, about: str, writers: Mapping[str, Callable[Of, Iterator[bytes]]]) -> None:
        self.about = about
        self._writers = dict(writers)

    @property
    def names(self) -> list[str]:
        """The names of its formats, in order."""
        return list(self._writers)

    @property
    def media_types(self) -> list[str]:
        """The media types of its formats, each once and without parameters."""
        return list(dict.fromkeys(FORMATS[name].media_type.partition(";")[0] for name in self.names))

    @property
    def endings(self) -> dict[str, str]:
        """The ending of files -> the name of the format."""
        return {FORMATS[name].ending: name for name in self._writers}

    def checked(self, name: str) -> str:
        """The name of one of its formats.

        :raises UnknownName: for any other.
        """
        if name not in self._writers:
            raise UnknownName(f"{self.about.partition(' ')[2]} format", name, self.names)
        return name

    def format_of(self, path: Path) -> str:
        """The format that a file's ending names.

        :raises UnknownName: for an ending that no format has.
        """
        ending = path.suffix.removeprefix(".").lower()
        if ending not in self.endings:
            raise UnknownName(f"ending of {self.about}", ending, list(self.endings))
        return self.endings[ending]

    def write(self, name: str, stem: str, *args: Of.args, **kwargs: Of.kwargs) -> ExportFile:
        """The file of a format; ``stem`` is its name without the ending.

        :raises UnknownName: for a format that it does not have.
        """
        known = FORMATS[self.checked(name)]
        return ExportFile(f"{stem}.{known.ending}", known.media_type, self._writers[name](*args, **kwargs))


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file that appears whole or not at all.

    :raises OSError: where it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with unfinished.open("wb") as file:
            file.writelines(chunks)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


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
    from openpyxl import Workbook  # costs 0.2 s at import

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
