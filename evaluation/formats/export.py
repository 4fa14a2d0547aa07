"""Export formats; CSV and Excel tables with formulas neutralized, and verbatim JSON Lines."""

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

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A file format: name in addresses and REST, file extension, media type."""

    name: str
    extension: str
    media_type: str


FORMATS = {
    export_format.name: export_format
    for export_format in (
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
    """An exported file in chunks, with a suggested name. ``made_at``: time of the export if it was stored earlier."""

    file_name: str
    media_type: str
    chunks: Iterator[bytes]
    made_at: datetime | None = None


class Exports(Generic[P]):
    """Export formats of one kind of object: format name -> function that writes it.

    ``about`` names the object in error messages, with its article."""

    def __init__(self, about: str, writers: Mapping[str, Callable[P, Iterator[bytes]]]) -> None:
        self.about = about
        self._writers = dict(writers)

    @property
    def names(self) -> list[str]:
        return list(self._writers)

    @property
    def media_types(self) -> list[str]:
        """Distinct media types without parameters."""
        return list(dict.fromkeys(FORMATS[name].media_type.partition(";")[0] for name in self.names))

    @property
    def extensions(self) -> dict[str, str]:
        """File extension -> format name."""
        return {FORMATS[name].extension: name for name in self._writers}

    def check_name(self, name: str) -> str:
        """Return the name if it is one of the formats.

        :raises UnknownName: otherwise."""
        if name not in self._writers:
            raise UnknownName(f"{self.about.partition(' ')[2]} format", name, self.names)
        return name

    def format_for_path(self, path: Path) -> str:
        """Return the format name for the extension of a path.

        :raises UnknownName: for an unknown extension."""
        extension = path.suffix.removeprefix(".").lower()
        if extension not in self.extensions:
            raise UnknownName(f"ending of {self.about}", extension, list(self.extensions))
        return self.extensions[extension]

    def write(self, name: str, stem: str, *args: P.args, **kwargs: P.kwargs) -> ExportFile:
        """Write the file of a format. ``stem`` is the file name without extension.

        :raises UnknownName: for an unknown format."""
        export_format = FORMATS[self.check_name(name)]
        return ExportFile(
            f"{stem}.{export_format.extension}", export_format.media_type, self._writers[name](*args, **kwargs)
        )


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file through a temporary file, so that it is complete or absent. A pipe or device is written to.

    :raises OSError: if it cannot be written."""
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            stream.writelines(chunks)
        return
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            file.writelines(chunks)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


CellValue = str | int | float | bool | None
_FORMULA_START = re.compile(r"[\s\u200b\u2060\ufeff]*[=+\-@＝＋－＠]|[\t\r\n]")
# Excel splits CSV at the list separator of its locale, often a semicolon. Quotes after a comma then protect nothing:
# text after a semicolon, tab or line break becomes a cell. "- item" and "---" are Markdown unless a function or DDE
# follows.
_FORMULA_WITHIN = re.compile(
    r"([;\t\r\n][ \xa0\u200b\u2060\ufeff]{0,20})"
    r"(?=[=@＝＠]|[-+－＋](?=[\w(])|[-+－＋ ]{1,20}[A-Za-z.]{1,50}\(|[-+－＋][^\r\n|]{0,200}\|)"
)
_INVALID_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Excel cannot open a workbook with a longer cell.
_XLSX_CELL_LIMIT = 32_767
_CUT_NOTE = " … [cut: the whole text is in the JSON Lines export]"
_ROWS_PER_CHUNK = 200


def neutralize_formula(cell: CellValue) -> CellValue:
    """Prefix an apostrophe to text that a spreadsheet would run as a formula; other cells are unchanged.

    Affects text that starts with ``= + - @`` (also in full width or after white space), a tab or a line break."""
    if isinstance(cell, str) and _FORMULA_START.match(cell):
        return "'" + cell
    return cell


def csv_chunks(header: Sequence[str], rows: Iterable[Sequence[CellValue]]) -> Iterator[bytes]:
    """Yield the table as CSV chunks in UTF-8 with a byte order mark, which spreadsheets need for Hangul.

    ``None`` becomes an empty cell. No text is a formula, whichever separator a spreadsheet splits at."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    buffer.write("\ufeff")
    writer.writerow([neutralize_csv_cell(name) for name in header])
    for number, row in enumerate(rows, start=1):
        writer.writerow([neutralize_csv_cell(cell) for cell in row])
        if number % _ROWS_PER_CHUNK == 0:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def neutralize_csv_cell(cell: CellValue) -> CellValue:
    """:func:`neutralize_formula`, also within the text."""
    safe = neutralize_formula(cell)
    return _FORMULA_WITHIN.sub(r"\1'", safe) if isinstance(safe, str) else safe


def xlsx_bytes(sheets: Mapping[str, tuple[Sequence[str], Iterable[Sequence[CellValue]]]]) -> bytes:
    """Build a workbook: sheet name (cut to 31 characters) -> header and rows.

    Characters that XML cannot hold become U+FFFD; texts longer than Excel's 32,767 characters are cut with a note."""
    # The import takes 0.2 s.
    from openpyxl import Workbook

    workbook = Workbook(write_only=True)
    for name, (header, rows) in sheets.items():
        sheet = workbook.create_sheet(re.sub(r"[\\/*?:\[\]]", "_", name)[:31])
        # The header stays visible while scrolling.
        sheet.freeze_panes = "A2"
        sheet.append([_xlsx_cell(title) for title in header])
        for row in rows:
            sheet.append([_xlsx_cell(cell) for cell in row])
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def _xlsx_cell(cell: CellValue) -> CellValue:
    safe = neutralize_formula(cell)
    if not isinstance(safe, str):
        return safe
    text = _INVALID_IN_XML.sub("\ufffd", safe)
    return text if len(text) <= _XLSX_CELL_LIMIT else text[: _XLSX_CELL_LIMIT - len(_CUT_NOTE)] + _CUT_NOTE


def json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one verbatim JSON object per line.

    :raises ValueError: for NaN and infinity, which JSON does not allow."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
