"""A run's report in a file format; the ending or the asked format chooses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluation.errors import UnknownName
from evaluation.files.export import csv_chunks, json_lines, xlsx_bytes
from evaluation.runs.models import Answer, Run
from review.reporting.as_json import details, report_json
from review.reporting.as_table import FIGURES, answer_header, answer_rows, figure_rows
from review.reporting.by_profile.answers import Fields, answer_fields
from review.reporting.gathering import gather
from review.reporting.making import report_of
from review.reporting.report import Report

Texts = dict[int, str]


@dataclass(frozen=True, slots=True)
class Facts:
    """What an export says of answers beside the report: their texts, and the fields of the profile's source."""

    texts: Texts
    fields: Mapping[int, Fields]


@dataclass(frozen=True, slots=True)
class Format:
    """An export format: its media type, how a report becomes bytes, and whether it has the source's fields."""

    media_type: str
    write: Callable[[Report, Facts], Iterator[bytes]]
    with_fields: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    """A report as bytes, a part at a time, under a suggested file name."""

    file_name: str
    media_type: str
    chunks: Iterator[bytes]


def format_of(path: Path) -> str:
    """The format that a file's ending names.

    :raises UnknownName: for an ending that is not among :data:`FORMATS`.
    """
    return _known(path.suffix.removeprefix(".").lower())


def _known(format_name: str) -> str:
    if format_name not in FORMATS:
        raise UnknownName("report format", format_name, list(FORMATS))
    return format_name


def export(run: Run, format_name: str) -> Exported:
    """The run's report in a format.

    :raises UnknownName: for a format that is not among :data:`FORMATS`.
    """
    chosen, basis = FORMATS[_known(format_name)], gather(run)
    facts = Facts(answer_texts(run), answer_fields(basis) if chosen.with_fields else {})
    return Exported(f"run-{run.pk}.{format_name}", chosen.media_type, chosen.write(report_of(basis), facts))


def export_to(run: Run, path: Path) -> None:
    """Write the run's report to a file whose ending names the format; the file appears whole or not at all.

    :raises UnknownName: for an unknown ending.
    :raises OSError: where the file cannot be written.
    """
    made = export(run, format_of(path))
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with unfinished.open("wb") as file:
            file.writelines(made.chunks)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def answer_texts(run: Run) -> Texts:
    """The texts of the run's answers by id. One query."""
    return dict(Answer.objects.filter(answer_set_id=run.answer_set_id).values_list("pk", "text"))


def _json(report: Report, facts: Facts) -> Iterator[bytes]:
    whole = report_json(report, facts.texts, facts.fields)
    yield json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=2).encode()


def _jsonl(report: Report, facts: Facts) -> Iterator[bytes]:
    return (line.encode() for line in json_lines(details(report, facts.texts, facts.fields)))


def _csv(report: Report, facts: Facts) -> Iterator[bytes]:
    return csv_chunks(answer_header(report), answer_rows(report, facts.texts))


def _xlsx(report: Report, facts: Facts) -> Iterator[bytes]:
    sheets = {
        "answers": (answer_header(report), answer_rows(report, facts.texts)),
        "figures": (FIGURES, figure_rows(report)),
    }
    yield xlsx_bytes(sheets)


FORMATS: dict[str, Format] = {
    "json": Format("application/json", _json, with_fields=True),
    "jsonl": Format("application/x-ndjson", _jsonl, with_fields=True),
    "csv": Format("text/csv; charset=utf-8", _csv),
    "xlsx": Format("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", _xlsx),
}
