"""A report as JSON, with every figure a value or a reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from review.reports.entries import Output
from review.reports.figure import plain
from review.reports.report import Report
from review.reports.row_context import context_by_category
from review.reports.sections import ANSWERS, REPORT, AnswerDetail

ReportJson = REPORT.json_type("Report")
_TEXT: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False}
# Position of the answers. No name or text consists of this character alone.
_PLACEHOLDER = "\0"


def report_json(report: Report, answers: Iterable[AnswerDetail]) -> Iterator[str]:
    """Stream the report with one entry of ``evaluation.details`` per answer, so that answers never fill memory."""
    document = summary_json(report)
    document["evaluation"]["details"] = [_PLACEHOLDER] if report.answers else []
    head, _, tail = json.dumps(document, **_TEXT, indent=2).partition(json.dumps(_PLACEHOLDER))
    yield head
    for index, detail in enumerate(answers):
        yield (",\n      " if index else "") + json.dumps(ANSWERS.nested(detail, Output.JSON, plain), **_TEXT)
    yield tail


def summary_json(report: Report) -> dict[str, Any]:
    return REPORT.nested(report, Output.JSON, plain)


def detail_records(report: Report, answers: Iterable[AnswerDetail]) -> Iterator[dict[str, Any]]:
    """One object per answer: the judge's or rule's value and the effective value of each metric.

    JSON Lines also repeat the values of the run, its metrics and the answer's category."""
    contexts = context_by_category(report, Output.JSONL)
    for detail in answers:
        record = ANSWERS.nested(detail, Output.JSONL, plain)
        for path, value in contexts[detail.line.answer.category].items():
            section = record
            for name in path[:-1]:
                section = section.setdefault(name, {})
            section[path[-1]] = plain(value)
        yield record
