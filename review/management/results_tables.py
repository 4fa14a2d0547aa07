"""The tables that ``results`` and ``evaluate`` print of a report: the sections that say something on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from evaluation.profiles.arithmetic import Label
from review.charts.forest import Shape
from review.management.tables import NOTHING, Sheet, number
from review.reports.entries import Entry, Output
from review.reports.figure import Figure
from review.reports.figure_notes import why_withheld
from review.reports.report import Latency, MetricLine, Report
from review.reports.sections import BY_CATEGORY, COVERAGE, METRICS, OVERALL, RUN, facts_of, figures_of

HERE = Output.TERMINAL


def results_sheets(report: Report) -> Iterator[Sheet]:
    """The run, its overall score three ways, metrics with coverage, categories."""
    header = report.header
    about = [(str(one.title), one.text(value)) for one, value in facts_of(RUN, report, HERE)]
    yield Sheet(f"{_('Run')} {header.run_id} · {header.name} · {header.state}", (_("what"), _("value")), about)
    yield Sheet(_("Overall score"), (_("score"), _("value"), _("95% interval"), "n", _("note")), _overall(report))
    figures, counts = METRICS.entries(HERE), COVERAGE.entries(HERE)
    titles = (str(one.title) for one in (*figures, *counts))
    rows = (
        (line.report_name, *(_of_metric(one, line) for one in figures), *(one.text(one.of(line)) for one in counts))
        for line in report.metrics
    )
    yield Sheet(_("Metrics"), (_("metric"), *titles), rows)
    yield _categories(report)


def short(figure: Figure, factor: float = 1.0) -> str:
    """The value times a factor, with bounds in brackets where results failed; a dash without one."""
    text = number(None if figure.value is None else figure.value * factor)
    if figure.worst is not None and figure.best is not None:
        text += f" [{figure.worst * factor:.3f}, {figure.best * factor:.3f}]"
    return text


def _overall(report: Report) -> Iterator[tuple[str, ...]]:
    """A figure of some parts only first, with its weight; then judge-only, reviewed, corrected."""
    for one, figure in reversed(figures_of(report, HERE)):
        title = str(one.title)
        if one.mark is Shape.PLAIN:
            name = _("rules only") if report.overall.label is Label.RULES_ONLY else title
            title = _("%(label)s, weight %(weight).2f") % {"label": name, "weight": report.overall.weight}
        yield _figure_row(title, figure)
    for one, value in facts_of(OVERALL, report, HERE):
        yield str(one.title), one.text(value), NOTHING, NOTHING, ""


def _figure_row(name: str, figure: Figure) -> tuple[str, ...]:
    interval = NOTHING if figure.low is None else f"{figure.low:.3f} – {figure.high:.3f}"
    note = why_withheld(figure) if figure.withheld else ""
    if not note and figure.target == "questions_like_these":
        note = _("variation over questions, not judge error")
    return name, short(figure), interval, str(figure.n), note


def _of_metric(one: Entry[MetricLine], line: MetricLine) -> str:
    if line.latency and one.mark is Shape.JUDGE:
        return _seconds(line.latency)
    return _text(one, one.of(line), line.report_factor)


def _text(one: Entry[Any], value: Any, factor: float = 1.0) -> str:
    return short(value, factor) if isinstance(value, Figure) else one.text(value)


def _seconds(latency: Latency) -> str:
    return f"{latency.mean:.2f} s (p50 {latency.p50:.2f}, p95 {latency.p95:.2f})"


def _categories(report: Report) -> Sheet:
    """The categories by what is said of each, then by the metrics that have a weight."""
    entries = BY_CATEGORY.entries(HERE)
    weighted = [line for line in report.metrics if line.weight]
    header = (_("category"), *(str(one.title) for one in entries), *(line.report_name for line in weighted))
    rows = (
        (
            line.name or NOTHING,
            *(_text(one, one.of(line)) for one in entries),
            *(
                short(line.metrics[metric.name][0], metric.report_factor) if metric.name in line.metrics else NOTHING
                for metric in weighted
            ),
        )
        for line in report.categories
    )
    return Sheet(_("Categories"), header, rows)
