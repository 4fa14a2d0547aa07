"""Category and profile cards: categories by metric with a plot, and the profile's bands and diagnoses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.utils.translation import get_language, gettext

from evaluation.core.metric_specs import JUDGED_KINDS
from evaluation.messages import numbers
from evaluation.messages.explanations import category_name
from evaluation.profiles.spec import OVERALL, ScoreBand
from evaluation.profiles.spec import TableCell as DiagnosisCell
from review.charts.forest import Forest, Shape, forest
from review.reports.entries import Output
from review.reports.figure import Figure
from review.reports.figure_cards import FigureCell, entry_cell, forest_row
from review.reports.lines import CategoryLine, Coverage, MetricLine
from review.reports.profile_section import BandedFigure, ClassTable, Diagnosis, PassRate, ProfileSection, Spread
from review.reports.report import CategoryTable, Report, category_tables
from review.reports.sections import BY_CATEGORY


class CategoryCard(NamedTuple):
    """Table of categories and metrics, a plot of the figure named ``plotted``, and categories by estimate.

    A row has the category's name, facts, and a cell per metric: the value and, if answers lack scores, the coverage.
    ``None`` if the metric does not apply."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, Sequence[FigureCell], Sequence[tuple[str, str] | None]]]
    plotted: str
    chart: Forest | None
    tables: tuple[CategoryTable, ...]


def category_card(report: Report, output: Output) -> CategoryCard:
    """Reviewed means by category, else judge-only ones. The plot shows the overall score, else the metric with the
    largest weight."""
    language = get_language() or "en"
    entries = BY_CATEGORY.entries(output)
    lines = [line for line in report.metrics if line.latency is None and not line.shares]
    rows = [
        (
            category_name(category.name),
            [entry_cell(entry, entry.read(category)) for entry in entries],
            [_metric_cell(category, line.name) for line in lines],
        )
        for category in report.categories
    ]
    plotted, chart = _plot(report, lines, language)
    columns = (*(entry.page_heading for entry in entries), *(line.title.in_language(language) for line in lines))
    return CategoryCard(columns, rows, plotted, chart, category_tables(report, language))


def _metric_cell(category: CategoryLine, metric: str) -> tuple[str, str] | None:
    coverage, figures = category.coverage.get(metric), category.metrics.get(metric)
    if figures is None or coverage is None or not (coverage.scored + coverage.failed + coverage.pending):
        return None
    value = _reviewed_or_judged(figures).value
    return "" if value is None else numbers.format_number(value), coverage_text(coverage)


def _reviewed_or_judged(figures: tuple[Figure, Figure]) -> Figure:
    """Reviewed figure if there are ratings, else the judge-only one."""
    judge_only, reviewed = figures
    return judge_only if reviewed.value is None else reviewed


def coverage_text(coverage: Coverage) -> str:
    """``9 of 10 scored`` if scores are missing among applicable answers, else empty."""
    due = coverage.scored + coverage.failed + coverage.pending
    if coverage.scored == due:
        return ""
    return gettext("%(scored)d of %(due)d scored") % {"scored": coverage.scored, "due": due}


def _plot(report: Report, lines: list[MetricLine], language: str) -> tuple[str, Forest | None]:
    if any(category.reviewed.value is not None for category in report.categories):
        figures = [(category, category.reviewed) for category in report.categories]
        return gettext("Overall score"), _forest(figures, 0, 1, bool(report.overall.reviewed_answers))
    by_weight = sorted(lines, key=lambda line: (-line.weight, line.kind not in JUDGED_KINDS))
    for line in by_weight:
        metric_figures = [
            (c, _reviewed_or_judged(c.metrics[line.name])) for c in report.categories if line.name in c.metrics
        ]
        defined_figures = [(category, figure) for category, figure in metric_figures if figure.value is not None]
        if len(defined_figures) > 1 and line.scale.width > 0:
            return line.title.in_language(language), _forest(
                defined_figures, line.scale.low, line.scale.high, bool(line.rated)
            )
    return "", None


def _forest(figures: list[tuple[CategoryLine, Figure]], low: float, high: float, rated: bool) -> Forest:
    shape = Shape.EXPERT if rated else Shape.JUDGE
    return forest(
        [forest_row(category_name(c.name), shape, figure, count=c.answers) for c, figure in figures], low=low, high=high
    )


class PassingView(NamedTuple):
    """Pass rate and reasons for failure with counts, the most frequent first."""

    rate: PassRate
    decided: int
    reasons: tuple[tuple[str, int], ...]


class DiagnosisCellView(NamedTuple):
    """Cell of a diagnosis table with its answers. ``run`` marks the cell of the run's means."""

    cell: DiagnosisCell
    signs: tuple[str, ...]
    answers: int
    run: bool


class ProfileCard(NamedTuple):
    """Content of the profile card. ``empty``: the profile adds nothing.

    Bands and classes come with figure titles, bands also with answers per band, and diagnosis tables with their cells.
    """

    section: ProfileSection
    passing: PassingView | None
    bands: tuple[tuple[str, BandedFigure, tuple[tuple[ScoreBand, int], ...]], ...]
    diagnoses: tuple[tuple[Diagnosis, tuple[DiagnosisCellView, ...]], ...]
    classes: tuple[tuple[str, ClassTable], ...]
    spread: tuple[Spread, ...]
    empty: bool


def profile_card(report: Report) -> ProfileCard:
    section, language = report.by_profile, get_language() or "en"
    titles = figure_titles(report)
    return ProfileCard(
        section=section,
        passing=_passing(section.passing, titles, language) if section.passing else None,
        bands=tuple((titles.get(banded.name, banded.name), banded, _counts(banded)) for banded in section.bands),
        diagnoses=tuple((diagnosis, _diagnosis_cells(diagnosis, language)) for diagnosis in section.diagnoses),
        classes=tuple((titles.get(table.name, table.name), table) for table in section.classes),
        spread=section.spread if len(section.spread) > 1 else (),
        empty=not (section.has_content or section.deviations),
    )


def figure_titles(report: Report) -> dict[str, str]:
    language = get_language() or "en"
    titles = {line.report_name: line.title.in_language(language) for line in reversed(report.metrics)}
    return titles | {OVERALL: gettext("Overall score"), "overall_score": gettext("Overall score")}


def _passing(rate: PassRate, titles: Mapping[str, str], language: str) -> PassingView:
    below = [
        (gettext("%(figure)s below its threshold") % {"figure": titles.get(name, name)}, count)
        for name, count in rate.below.items()
        if count
    ]
    flags = [(rate.flag_titles[name].in_language(language), count) for name, count in rate.flags.items() if count]
    return PassingView(rate, rate.passed + rate.failed, tuple(sorted([*below, *flags], key=lambda reason: -reason[1])))


def _counts(banded: BandedFigure) -> tuple[tuple[ScoreBand, int], ...]:
    return tuple((band, banded.answers[band.name]) for band in banded.bands)


def _diagnosis_cells(diagnosis: Diagnosis, language: str) -> tuple[DiagnosisCellView, ...]:
    cells = []
    for field in diagnosis.table.cells:
        signs = tuple(
            (gettext("%(figure)s high") if axis.name in field.high else gettext("%(figure)s low"))
            % {"figure": axis.title.bilingual.in_language(language)}
            for axis in diagnosis.table.axes
        )
        run = diagnosis.run is not None and diagnosis.run.name == field.name
        cells.append(DiagnosisCellView(field, signs, diagnosis.answers[field.name], run))
    return tuple(cells)
