"""A report as tables for spreadsheets: one row per answer, and one per figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.translation import get_language

from evaluation.formats.export import CellValue
from evaluation.messages.explanations import explain_reason
from review.evidence.effective import EffectiveValue
from review.reports.entries import Entry, Output, Path
from review.reports.figure import Figure, withheld_reason
from review.reports.report import Report
from review.reports.row_context import context_by_category
from review.reports.sections import ANSWERS, METRICS, OVERALL, REPORT, VALUES, AnswerDetail

FIGURES = ("figure", "estimate", "value", "low", "high", "target", "n", "withheld")


def answer_table(
    report: Report, answers: Iterable[AnswerDetail], output: Output
) -> tuple[list[str], Iterator[list[CellValue]]]:
    """Header and rows of answers: facts, then values of every metric under its name.

    CSV repeats values of the run, its metrics and the category in each row. A workbook has a separate sheet for them
    and words reasons; files for programs keep codes."""
    answer_entries, value_entries = ANSWERS.entries(output), VALUES.entries(output)
    names = [line.name for line in report.metrics]
    contexts = context_by_category(report, Output.CSV) if output is Output.CSV else {}
    paths: list[Path] = list(dict.fromkeys(path for values in contexts.values() for path in values))
    header = [
        *(entry.name if entry.column is None else entry.column for entry in answer_entries),
        *(name + _column_suffix(entry) for name in names for entry in value_entries),
        *map(".".join, paths),
    ]
    rows = (
        [
            *(_cell(entry.read(detail)) for entry in answer_entries),
            *(cell for name in names for cell in _value_cells(value_entries, detail.line.values.get(name), output)),
            *(_cell(contexts[detail.line.answer.category].get(path)) for path in paths),
        ]
        for detail in answers
    )
    return header, rows


def figure_rows(report: Report) -> Iterator[list[CellValue]]:
    """A row for each figure of the run, its metrics and categories, with reasons in words."""
    titles = {line.name: line.title.in_language(get_language() or "en") for line in report.metrics}
    for path, value in REPORT.leaves(report, Output.XLSX):
        *inner, name = path[1:]
        subject = ".".join(inner[1:] if inner[:1] == [METRICS.name] else inner)
        # Name a partial figure by its label and weight.
        if (subject, name) == (OVERALL.name, "part_only"):
            subject, name = str(report.overall.label), f"weight {report.overall.weight:.2f}"
        row: list[CellValue] = [subject, name, _cell(value)]
        if isinstance(value, Figure):
            row += [value.low, value.high, value.target, value.n, withheld_reason(value, titles)]
        yield row


def _column_suffix(entry: Entry[EffectiveValue]) -> str:
    return f"_{entry.name}" if entry.column is None else entry.column


def _value_cells(entries: list[Entry[EffectiveValue]], value: EffectiveValue | None, output: Output) -> list[CellValue]:
    if value is not None and output is Output.XLSX:
        value = value._replace(reason=explain_reason(value.reason))
    return [None if value is None else _cell(entry.read(value)) for entry in entries]


def _cell(value: Any) -> CellValue:
    if isinstance(value, Figure):
        return value.value
    if isinstance(value, Mapping):
        return ", ".join(f"{label}: {element}" for label, element in value.items())
    return value if value is None or isinstance(value, str | int | float) else str(value)
