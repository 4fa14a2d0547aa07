"""What a row per answer says of what the answer belongs to."""

from __future__ import annotations

from typing import Any

from review.reports.entries import Output, Path
from review.reports.report import Report
from review.reports.sections import BY_CATEGORY, REPORT


def around(report: Report, output: Output) -> dict[str, dict[Path, Any]]:
    """What a row per answer says of what the answer belongs to, by category: values of the run and its metrics, and of
    the category itself under the section's name."""
    found: dict[str, dict[Path, Any]] = {}
    for category in report.categories:
        mine = found.setdefault(category.name, {})
        for path, value in REPORT.leaves(report, output):
            if path[1] != BY_CATEGORY.name:
                mine[path[1:]] = value
            elif path[2] == category.name:
                mine[BY_CATEGORY.name, *path[3:]] = value
    return found
