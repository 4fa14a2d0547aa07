"""Where a run is strong and weak: categories by metric, with what was scored, and one plot."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language, gettext

from evaluation.core.registry import JUDGED
from evaluation.wording.categories import category_name
from review.charts.forest import Forest, Shape, forest
from review.reports.category_tables import CategoryTable, category_tables
from review.reports.entries import Output
from review.reports.figure import Figure
from review.reports.report import CategoryLine, Coverage, MetricLine, Report
from review.reports.sections import BY_CATEGORY
from review.web.pages.figures import Cell, cell, row, said


@dataclass(frozen=True, slots=True)
class CategoryCell:
    """A metric in a category; ``coverage`` is filled where not every answer was scored, ``empty`` where the metric
    applies to none of them."""

    title: str
    figure: Cell
    coverage: str
    empty: bool


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """A category with what is said of it and one cell per metric."""

    name: str
    facts: tuple[Cell, ...]
    cells: tuple[CategoryCell, ...]


@dataclass(frozen=True, slots=True)
class ThreeTable:
    """The categories by the figure named ``title``: its name, its answers, and a cell for each of the three ways."""

    title: str
    rows: tuple[tuple[str, int, tuple[Cell, ...]], ...]


@dataclass(frozen=True, slots=True)
class CategoryCard:
    """The table of categories and metrics, a plot of the figure named ``plotted``, and the categories three ways."""

    columns: tuple[str, ...]
    rows: tuple[CategoryRow, ...]
    plotted: str
    chart: Forest | None
    tables: tuple[ThreeTable, ...]


def category_card(report: Report) -> CategoryCard:
    """Reviewed means by category; the plot is of the overall score where it exists, else of the weightiest metric."""
    language = get_language() or "en"
    entries = BY_CATEGORY.entries(Output.PAGE)
    lines = [line for line in report.metrics if line.latency is None and not line.shares]
    rows = [
        CategoryRow(
            category_name(category.name),
            tuple(said(one, one.of(category)) for one in entries),
            tuple(_cell(category, line, line.title.in_language(language)) for line in lines),
        )
        for category in report.categories
    ]
    plotted, chart = _plot(report, lines, language)
    columns = (*(one.page_heading for one in entries), *(line.title.in_language(language) for line in lines))
    tables = tuple(_three(table) for table in category_tables(report, language))
    return CategoryCard(columns, tuple(rows), plotted, chart, tables)


def _three(table: CategoryTable) -> ThreeTable:
    return ThreeTable(
        table.title,
        tuple(
            (
                category_name(one.name),
                one.answers,
                tuple(cell(figure, table.scale) for figure in (one.judge_only, one.reviewed, one.corrected)),
            )
            for one in table.rows
        ),
    )


def _cell(category: CategoryLine, line: MetricLine, title: str) -> CategoryCell:
    covered = category.coverage.get(line.name)
    figures = category.metrics.get(line.name)
    if figures is None or covered is None or not (covered.scored or covered.failed or covered.pending):
        return CategoryCell(title, Cell("", "", "", ""), "", empty=True)
    return CategoryCell(title, cell(figures[1]), coverage_text(covered), empty=False)


def coverage_text(covered: Coverage) -> str:
    """``9 of 10 scored`` where something is missing among the answers that the metric applies to."""
    due = covered.scored + covered.failed + covered.pending
    if covered.scored == due:
        return ""
    return gettext("%(scored)d of %(due)d scored") % {"scored": covered.scored, "due": due}


def _plot(report: Report, lines: list[MetricLine], language: str) -> tuple[str, Forest | None]:
    if any(category.reviewed.value is not None for category in report.categories):
        figures = [(category, category.reviewed) for category in report.categories]
        return gettext("Overall score"), _forest(figures, 0, 1, bool(report.overall.reviewed_answers))
    by_weight = sorted(lines, key=lambda line: (-line.weight, line.kind not in JUDGED))
    for line in by_weight:
        found = [(c, c.metrics[line.name][1]) for c in report.categories if line.name in c.metrics]
        held = [(category, figure) for category, figure in found if figure.value is not None]
        if len(held) > 1 and line.scale.width > 0:
            return line.title.in_language(language), _forest(held, line.scale.low, line.scale.high, bool(line.rated))
    return "", None


def _forest(figures: list[tuple[CategoryLine, Figure]], low: float, high: float, rated: bool) -> Forest:
    shape = Shape.EXPERT if rated else Shape.JUDGE
    return forest(
        [row(category_name(c.name), shape, figure, count=c.answers) for c, figure in figures], low=low, high=high
    )
