"""A report as JSON: the tree of sections as it stands, with every figure a value or a reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from review.reports.around import around
from review.reports.entries import Output
from review.reports.figure import plain
from review.reports.report import Report
from review.reports.sections import ANSWERS, REPORT, ToldAnswer

_TEXT: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False}
_HERE = "\0"  # where the answers go; no name and no text is this alone


def report_json(report: Report, answers: Iterable[ToldAnswer]) -> Iterator[str]:
    """The whole report with one entry of ``evaluation.details`` per answer, each a line of its own that is made when it
    is written, so that they never stand together."""
    whole = summary_json(report)
    whole["evaluation"]["details"] = [_HERE] if report.answers else []
    head, _, tail = json.dumps(whole, **_TEXT, indent=2).partition(json.dumps(_HERE))
    yield head
    for at, told in enumerate(answers):
        yield (",\n      " if at else "") + json.dumps(ANSWERS.nested(told, Output.JSON, plain), **_TEXT)
    yield tail


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
