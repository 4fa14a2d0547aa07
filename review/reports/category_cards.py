"""Where a run is strong and weak: categories by metric with one plot, and what the profile makes of the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.utils.translation import get_language, gettext

from evaluation.core.metric_specs import JUDGED
from evaluation.messages import numbers
from evaluation.messages.sentences import category_name
from evaluation.profiles.spec import OVERALL, Band
from evaluation.profiles.spec import Cell as DiagnosisCell
from review.charts.forest import Forest, Shape, forest
from review.reports.entries import Output
from review.reports.figure import Figure
from review.reports.figure_cards import Cell, row, said
from review.reports.lines import CategoryLine, Coverage, MetricLine
from review.reports.profile_section import Banded, ClassTable, Diagnosed, PassRate, ProfileSection, Spread
from review.reports.report import CategoryTable, Report, category_tables
from review.reports.sections import BY_CATEGORY


class CategoryCard(NamedTuple):
    """The table of categories and metrics, a plot of the figure named ``plotted``, and the categories three ways. A row
    is a category's name with what is said of it and one cell per metric: its value and, where not every answer was
    scored, how many were; ``None`` where the metric applies to none of them."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, Sequence[Cell], Sequence[tuple[str, str] | None]]]
    plotted: str
    chart: Forest | None
    tables: tuple[CategoryTable, ...]


def category_card(report: Report, output: Output) -> CategoryCard:
    """Reviewed means by category, as they came where nobody rated; the plot is of the overall score where it exists,
    else of the weightiest metric."""
    language = get_language() or "en"
    entries = BY_CATEGORY.entries(output)
    lines = [line for line in report.metrics if line.latency is None and not line.shares]
    rows = [
        (
            category_name(category.name),
            [said(one, one.of(category)) for one in entries],
            [_cell(category, line.name) for line in lines],
        )
        for category in report.categories
    ]
    plotted, chart = _plot(report, lines, language)
    columns = (*(one.page_heading for one in entries), *(line.title.in_language(language) for line in lines))
    return CategoryCard(columns, rows, plotted, chart, category_tables(report, language))


def _cell(category: CategoryLine, metric: str) -> tuple[str, str] | None:
    covered, figures = category.coverage.get(metric), category.metrics.get(metric)
    if figures is None or covered is None or not (covered.scored + covered.failed + covered.pending):
        return None
    value = _told(figures).value
    return "" if value is None else numbers.plain(value), coverage_text(covered)


def _told(figures: tuple[Figure, Figure]) -> Figure:
    """With the experts' values where they rated, else as it came."""
    as_it_came, reviewed = figures
    return as_it_came if reviewed.value is None else reviewed


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
        found = [(c, _told(c.metrics[line.name])) for c in report.categories if line.name in c.metrics]
        held = [(category, figure) for category, figure in found if figure.value is not None]
        if len(held) > 1 and line.scale.width > 0:
            return line.title.in_language(language), _forest(held, line.scale.low, line.scale.high, bool(line.rated))
    return "", None


def _forest(figures: list[tuple[CategoryLine, Figure]], low: float, high: float, rated: bool) -> Forest:
    shape = Shape.EXPERT if rated else Shape.JUDGE
    return forest(
        [row(category_name(c.name), shape, figure, count=c.answers) for c, figure in figures], low=low, high=high
    )


class PassingView(NamedTuple):
    """The pass rate, and the reasons for failing with their counts, the commonest first."""

    rate: PassRate
    decided: int
    reasons: tuple[tuple[str, int], ...]


class CellView(NamedTuple):
    """A field of a table of high and low with its answers; ``run`` marks the one of the run's means."""

    cell: DiagnosisCell
    signs: tuple[str, ...]
    answers: int
    run: bool


class ProfileCard(NamedTuple):
    """Everything the card shows, ``empty`` where the profile has nothing to add. Bands and classes come with the titles
    of their figures, bands also with the answers in each, and each table of high and low with its fields."""

    section: ProfileSection
    passing: PassingView | None
    bands: tuple[tuple[str, Banded, tuple[tuple[Band, int], ...]], ...]
    diagnoses: tuple[tuple[Diagnosed, tuple[CellView, ...]], ...]
    classes: tuple[tuple[str, ClassTable], ...]
    spread: tuple[Spread, ...]
    empty: bool


def profile_card(report: Report) -> ProfileCard:
    """The card in the reader's language."""
    section, language = report.by_profile, get_language() or "en"
    titles = figure_titles(report)
    return ProfileCard(
        section=section,
        passing=_passing(section.passing, titles, language) if section.passing else None,
        bands=tuple((titles.get(one.name, one.name), one, _counts(one)) for one in section.bands),
        diagnoses=tuple((one, _cells(one, language)) for one in section.diagnoses),
        classes=tuple((titles.get(one.name, one.name), one) for one in section.classes),
        spread=section.spread if len(section.spread) > 1 else (),
        empty=not (section.says_anything or section.deviations),
    )


def figure_titles(report: Report) -> dict[str, str]:
    """The source's name of a figure -> its title."""
    language = get_language() or "en"
    found = {line.report_name: line.title.in_language(language) for line in reversed(report.metrics)}
    return found | {OVERALL: gettext("Overall score"), "overall_score": gettext("Overall score")}


def _passing(rate: PassRate, titles: Mapping[str, str], language: str) -> PassingView:
    below = [
        (gettext("%(figure)s below its threshold") % {"figure": titles.get(name, name)}, count)
        for name, count in rate.below.items()
        if count
    ]
    flags = [(rate.flag_titles[name].in_language(language), count) for name, count in rate.flags.items() if count]
    return PassingView(rate, rate.passed + rate.failed, tuple(sorted([*below, *flags], key=lambda one: -one[1])))


def _counts(banded: Banded) -> tuple[tuple[Band, int], ...]:
    """How many answers fall into each of the bands."""
    return tuple((band, banded.answers[band.name]) for band in banded.bands)


def _cells(found: Diagnosed, language: str) -> tuple[CellView, ...]:
    cells = []
    for field in found.table.cells:
        signs = tuple(
            (gettext("%(figure)s high") if axis.name in field.high else gettext("%(figure)s low"))
            % {"figure": axis.title.bilingual.in_language(language)}
            for axis in found.table.axes
        )
        run = found.run is not None and found.run.name == field.name
        cells.append(CellView(field, signs, found.answers[field.name], run))
    return tuple(cells)
