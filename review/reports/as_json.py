"""A report as JSON: the tree of sections as it stands, with every figure a value or a reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from review.reports.around import around
from review.reports.entries import Output
from review.reports.figure import plain
from review.reports.report import Report
from review.reports.sections import ANSWERS, REPORT, ToldAnswer

_AT_ONCE = 20_000  # parts of the text: a number, a bracket, a name


class _Details(list[ToldAnswer]):
    """Answers of which JSON makes each when it is written, so that they never stand together."""

    def __iter__(self) -> Iterator[Any]:
        return (ANSWERS.nested(one, Output.JSON, plain) for one in list.__iter__(self))


def report_json(report: Report, answers: Iterable[ToldAnswer]) -> Iterator[str]:
    """The whole report with one entry of ``evaluation.details`` per answer, a piece of the text at a time."""
    whole = summary_json(report)
    whole["evaluation"]["details"] = _Details(answers)
    parts = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2).iterencode(whole)
    while piece := "".join(islice(parts, _AT_ONCE)):
        yield piece


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
