"""A report as JSON: the tree of sections as it stands, with every figure a value or a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from review.reports.answer_entries import ANSWERS, ToldAnswer
from review.reports.entries import Output
from review.reports.figure import Figure
from review.reports.report import Report
from review.reports.sections import REPORT, around

DIGITS = 12  # values are exact to here and stay readable: 0.762 instead of 0.7619999999999999


def report_json(report: Report, answers: Iterable[ToldAnswer]) -> dict[str, Any]:
    """The whole report with one entry of ``evaluation.details`` per answer."""
    whole = summary_json(report)
    whole["evaluation"]["details"] = [ANSWERS.nested(one, Output.JSON, plain) for one in answers]
    return whole


def summary_json(report: Report) -> dict[str, Any]:
    """The report without its answers."""
    return REPORT.nested(report, Output.JSON, plain)


def details(report: Report, answers: Iterable[ToldAnswer]) -> Iterator[dict[str, Any]]:
    """One object per answer: the judge's (or rule's) value of each metric, and the effective one with its source;
    beside them what wider sections say in JSON Lines of the run, its metrics and the answer's category."""
    wider = around(report, Output.JSONL)
    for one in answers:
        found = ANSWERS.nested(one, Output.JSONL, plain)
        for path, value in wider[one.line.answer.category].items():
            inner = found
            for name in path[:-1]:
                inner = inner.setdefault(name, {})
            inner[path[-1]] = plain(value)
        yield found


def plain(value: Any) -> Any:
    """JSON values: numbers rounded to 12 digits, moments in ISO 8601, money as text without loss."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Figure):
        return plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value
