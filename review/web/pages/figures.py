"""Report figures as rows of a plot and cells of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from django.utils.translation import gettext

from evaluation.core.scales import Scale
from evaluation.wording import numbers
from review.charts import forest as charts
from review.reports.figure import Figure
from review.reports.figure_notes import why_withheld

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
