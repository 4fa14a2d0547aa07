"""Report figures as rows of a plot, cells of a table and facts, and the table of metrics made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django.utils.translation import get_language, gettext

from evaluation.core.scales import Scale
from evaluation.wording import numbers
from review.charts import forest as charts
from review.reports.entries import Entry, Output, Section
from review.reports.figure import Figure
from review.reports.figure_notes import why_withheld
from review.reports.report import MetricLine, Report
from review.reports.sections import COVERAGE, METRICS, facts_of

_NO_TITLES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure in a table. Without ``value`` there is a ``reason``; ``bounds`` tell what failures could have done."""

    value: str
    interval: str
    bounds: str
    reason: str


def cell(figure: Figure, scale: Scale | None = None, titles: Mapping[str, str] = _NO_TITLES) -> Cell:
    """The figure as text; on a scale of seconds with its unit. ``titles`` are the metrics' by name, for what is
    missing."""
    bounds = bounds_text(figure)
    if figure.value is None:
        return Cell("", "", bounds, why_withheld(figure, titles))
    value = numbers.plain(figure.value)
    if scale and scale.kind == "seconds":
        value = numbers.seconds(figure.value)
    return Cell(value, numbers.interval(figure.low, figure.high), bounds, "")


def said(entry: Entry[Any], value: Any, scale: Scale | None = None) -> Cell:
    """A value of an entry: figures with interval and bounds, other numbers and texts as they are."""
    return cell(value, scale) if isinstance(value, Figure) else Cell(fact_text(entry, value), "", "", "")


def fact_text(entry: Entry[Any], value: Any) -> str:
    """A value of an entry that is no figure."""
    return entry.text(value, 2).replace("-", "\N{MINUS SIGN}") if isinstance(value, float) else entry.text(value)


def facts(section: Section[Report, Report], report: Report) -> tuple[tuple[str, str], ...]:
    """What a section says of the run beside its figures, as terms with texts."""
    return tuple((one.page_heading, fact_text(one, value)) for one, value in facts_of(section, report, Output.PAGE))


def bounds_text(figure: Figure) -> str:
    """Between which values the figure lies whatever the failed results would have been; empty where none failed."""
    if figure.worst is None or figure.best is None:
        return ""
    ends = {"worst": numbers.plain(figure.worst), "best": numbers.plain(figure.best)}
    return gettext("Between %(worst)s and %(best)s, whatever the failed results would have been.") % ends


def row(
    label: str,
    shape: charts.Shape,
    figure: Figure,
    *,
    note: str = "",
    count: int | None = None,
    href: str = "",
    titles: Mapping[str, str] = _NO_TITLES,
) -> charts.ForestRow:
    """The figure as a row of a plot; a withheld one says why, with its bounds where it has any."""
    if figure.value is None:
        reason = " ".join(part for part in (why_withheld(figure, titles), bounds_text(figure)) if part)
        return charts.ForestRow(label, shape, None, note=note, count=count, withheld=reason, href=href)
    drawn = charts.Figure(figure.value, figure.low, figure.high)
    return charts.ForestRow(label, shape, drawn, note=note, count=count, href=href)


@dataclass(frozen=True, slots=True)
class MetricCell:
    """A cell under an entry; ``bad`` where the count ought to be nought and is not."""

    entry: Entry[MetricLine]
    figure: Cell
    bad: bool


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric. ``shares`` are of class metrics (label and percentage), ``p95`` of latencies."""

    line: MetricLine
    title: str
    scale: str
    cells: tuple[MetricCell, ...]
    shares: tuple[tuple[str, str], ...]
    p95: str


@dataclass(frozen=True, slots=True)
class MetricTable:
    """The metrics of a run: means three ways, and how many answers they rest on."""

    columns: tuple[Entry[MetricLine], ...]
    rows: tuple[MetricRow, ...]


def metric_table(report: Report) -> MetricTable:
    """The weighted metrics of the profile first, then the reported ones."""
    language = get_language() or "en"
    entries = [*METRICS.entries(Output.PAGE), *COVERAGE.entries(Output.PAGE)]
    return MetricTable(
        columns=tuple(entries),
        rows=tuple(
            MetricRow(
                line=line,
                title=line.title.in_language(language),
                scale=numbers.scale_name(line.scale),
                cells=tuple(_metric_cell(one, line) for one in entries),
                shares=tuple((label, numbers.share(share)) for label, share in line.shares.items()),
                p95=numbers.seconds(line.latency.p95) if line.latency else "",
            )
            for line in sorted(report.metrics, key=lambda line: -line.weight)
        ),
    )


def _metric_cell(entry: Entry[MetricLine], line: MetricLine) -> MetricCell:
    value = entry.of(line)
    return MetricCell(entry, said(entry, value, line.scale), bad=entry.bad and bool(value))
