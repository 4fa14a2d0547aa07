"""A report as tables: one row per answer, and one per figure, for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.translation import get_language

from evaluation.formats.export import Cell
from evaluation.messages.sentences import explain_reason
from review.evidence.effective import Effective
from review.reports.around import around
from review.reports.entries import Entry, Output, Path
from review.reports.figure import Figure, why_withheld
from review.reports.report import Report
from review.reports.sections import ANSWERS, METRICS, OVERALL, REPORT, VALUES, ToldAnswer

FIGURES = ("figure", "estimate", "value", "low", "high", "target", "n", "withheld")


def answer_table(
    report: Report, answers: Iterable[ToldAnswer], output: Output
) -> tuple[list[str], Iterator[list[Cell]]]:
    """The columns and rows of answers: what is said of each, the values of every metric under the metric's name, and
    in CSV what wider sections say of the run, its metrics and the answer's category; a workbook has a sheet of them. A
    workbook is for people, so why there is no value is a sentence there; files for programs keep the code."""
    own, each = ANSWERS.entries(output), VALUES.entries(output)
    names = [line.name for line in report.metrics]
    wider = around(report, Output.CSV) if output is Output.CSV else {}
    paths: list[Path] = list(dict.fromkeys(path for found in wider.values() for path in found))
    header = [
        *(one.name if one.column is None else one.column for one in own),
        *(name + _ending(one) for name in names for one in each),
        *map(".".join, paths),
    ]
    rows = (
        [
            *(_cell(one.of(told)) for one in own),
            *(cell for name in names for cell in _values(each, told.line.values.get(name), output)),
            *(_cell(wider[told.line.answer.category].get(path)) for path in paths),
        ]
        for told in answers
    )
    return header, rows


def figure_rows(report: Report) -> Iterator[list[Cell]]:
    """A row for each figure of the run, its metrics and its categories; why one is withheld in words."""
    titles = {line.name: line.title.in_language(get_language() or "en") for line in report.metrics}
    for path, value in REPORT.leaves(report, Output.XLSX):
        *inner, name = path[1:]
        about = ".".join(inner[1:] if inner[:1] == [METRICS.name] else inner)
        if (about, name) == (OVERALL.name, "part_only"):  # called by what it is, with the weight that it has
            about, name = str(report.overall.label), f"weight {report.overall.weight:.2f}"
        row: list[Cell] = [about, name, _cell(value)]
        if isinstance(value, Figure):
            row += [value.low, value.high, value.target, value.n, why_withheld(value, titles)]
        yield row


def _ending(one: Entry[Effective]) -> str:
    return f"_{one.name}" if one.column is None else one.column


def _values(entries: list[Entry[Effective]], value: Effective | None, output: Output) -> list[Cell]:
    if value is not None and output is Output.XLSX:
        value = value._replace(reason=explain_reason(value.reason))
    return [None if value is None else _cell(one.of(value)) for one in entries]


def _cell(value: Any) -> Cell:
    if isinstance(value, Figure):
        return value.value
    if isinstance(value, Mapping):
        return ", ".join(f"{label}: {one}" for label, one in value.items())
    return value if value is None or isinstance(value, str | int | float) else str(value)
