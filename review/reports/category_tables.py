"""What categories say three ways: judge only, reviewed and corrected side by side, for the score and each metric."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext

from evaluation.core.registry import Scale
from review.reports.figure import Figure
from review.reports.report import Report


@dataclass(frozen=True, slots=True)
class CategoryFigures:
    """One category's figures, with the number of its answers."""

    name: str
    answers: int
    judge_only: Figure
    reviewed: Figure
    corrected: Figure


@dataclass(frozen=True, slots=True)
class CategoryTable:
    """The categories by one figure, named by ``title``; ``scale`` is that of a metric, ``None`` for the score."""

    title: str
    scale: Scale | None
    rows: tuple[CategoryFigures, ...]


def category_tables(report: Report, language: str) -> tuple[CategoryTable, ...]:
    """The overall score where any category has one, then every metric that people rated."""
    tables = []
    if any(one.judge_only.value is not None for one in report.categories):
        rows = tuple(
            CategoryFigures(one.name, one.answers, one.judge_only, one.reviewed, one.corrected_overall)
            for one in report.categories
        )
        tables.append(CategoryTable(gettext("Overall score"), None, rows))
    for line in report.metrics:
        if line.rated and not line.shares:
            rows = tuple(
                CategoryFigures(one.name, one.answers, *one.metrics[line.name], one.corrected[line.name])
                for one in report.categories
                if line.name in one.metrics and line.name in one.corrected
            )
            tables.append(CategoryTable(line.title.in_language(language), line.scale, rows))
    return tuple(one for one in tables if one.rows)
