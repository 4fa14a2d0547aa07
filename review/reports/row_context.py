"""Values that each answer row repeats about its run and category."""

from __future__ import annotations

from typing import Any

from review.reports.entries import Output, Path
from review.reports.report import Report
from review.reports.sections import BY_CATEGORY, REPORT


def context_by_category(report: Report, output: Output) -> dict[str, dict[Path, Any]]:
    """Values of the run, its metrics and the category, by category, for rows of answers."""
    contexts: dict[str, dict[Path, Any]] = {}
    for category in report.categories:
        context = contexts.setdefault(category.name, {})
        for path, value in REPORT.leaves(report, output):
            if path[1] != BY_CATEGORY.name:
                context[path[1:]] = value
            elif path[2] == category.name:
                context[BY_CATEGORY.name, *path[3:]] = value
    return contexts
