"""Interval plots: a run's figures, differences around zero, and a figure over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from review.charts.axis import MINUS, Axis, Tick, axis_around


class Shape(StrEnum):
    """Author of a figure, which determines shape and colour on every page."""

    EXPERT = "expert"
    JUDGE = "judge"
    CORRECTED = "corrected"
    PLAIN = "plain-mark"


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval. ``low`` and ``high`` are ``None`` without one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ForestRow:
    """Input of a row. A row without a figure needs ``withheld``, the reason in words."""

    label: str
    shape: Shape
    figure: Figure | None
    note: str = ""
    count: int | None = None
    withheld: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """A laid-out row: positions in percent, and texts."""

    row: ForestRow
    position: str
    start: str
    end: str
    value: str
    interval: str


@dataclass(frozen=True, slots=True)
class Forest:
    """A laid-out plot: rows from top to bottom on one axis. ``tall`` rows have room for a second line."""

    rows: tuple[DrawnRow, ...]
    ticks: tuple[Tick, ...]
    tall: bool

    @property
    def has_figures(self) -> bool:
        return any(drawn.row.figure for drawn in self.rows)


def forest(
    rows: Sequence[ForestRow], *, low: float = 0.0, high: float = 1.0, decimals: int = 2, tall: bool = False
) -> Forest:
    """Lay out rows on a common axis within ``low`` to ``high``.

    :raises ValueError: for a row with neither a figure nor a reason."""
    axis = axis_around(_values(rows), low=low, high=high)
    return Forest(tuple(_draw_row(row, axis, decimals) for row in rows), axis.ticks, tall)


def _values(rows: Sequence[ForestRow]) -> list[float]:
    figures = [row.figure for row in rows if row.figure]
    return [v for f in figures for v in (f.value, f.low, f.high) if v is not None]


def _draw_row(row: ForestRow, axis: Axis, decimals: int) -> DrawnRow:
    figure = row.figure
    if figure is None:
        if not row.withheld:
            raise ValueError(f"row {row.label!r} has neither a figure nor a reason")
        return DrawnRow(row, "", "", "", "", "")
    low, high = figure.low, figure.high
    interval = "" if low is None or high is None else f"{low:.{decimals}f}–{high:.{decimals}f}"
    start, end = ("", "") if low is None or high is None else (axis.position(low), axis.position(high))
    return DrawnRow(row, axis.position(figure.value), start, end, f"{figure.value:.{decimals}f}", interval)


@dataclass(frozen=True, slots=True)
class Difference:
    """Input of a row: a difference with its interval, as a share of the scale or in its units, and texts.

    Without a ``value``, ``withheld`` is the reason."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    text: str = ""
    interval: str = ""
    withheld: str = ""
    shape: str = "judge"
    note: str = ""


@dataclass(frozen=True, slots=True)
class DrawnDifference:
    """A laid-out difference with positions in percent, empty if undefined."""

    row: Difference
    position: str
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class Differences:
    """A laid-out plot. ``zero`` is the position of no difference."""

    rows: tuple[DrawnDifference, ...]
    ticks: tuple[Tick, ...]
    zero: str


def differences(rows: Sequence[Difference], reach: float = 1.0) -> Differences:
    """Lay out differences on one axis that includes zero, within ``-reach`` to ``reach``.

    ``reach`` is 1 for shares of the scale, or the scale's width for differences in its units."""
    values = [v for row in rows if row.value is not None for v in (row.value, row.low, row.high) if v is not None]
    axis = axis_around([0.0, *values], low=-reach, high=reach)
    drawn = tuple(
        DrawnDifference(
            row,
            "" if row.value is None else axis.position(row.value),
            "" if row.value is None or row.low is None else axis.position(row.low),
            "" if row.value is None or row.high is None else axis.position(row.high),
        )
        for row in rows
    )
    return Differences(
        drawn, tuple(Tick(t.position, t.text.replace("-", MINUS)) for t in axis.ticks), axis.position(0.0)
    )


# Margin in percent at both ends.
MARGIN = 6.0
# Minimum distance in percent between the texts of two changes.
MIN_GAP = 34.0


@dataclass(frozen=True, slots=True)
class Moment:
    """A figure at a time. ``value`` is ``None`` if undefined. ``change`` describes a change since the previous
    moment."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    change: str = ""


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """A laid-out moment, with only ``x`` if it has no figure. ``bottom`` and ``top`` are the ends of its interval."""

    moment: Moment
    x: str
    y: str
    bottom: str
    top: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Marks from left to right at equal steps.

    ``segments`` join neighbouring figures without a change between them. ``changes`` are vertical lines halfway before
    the moment of a change, with text if there is room."""

    marks: tuple[TimelineMark, ...]
    segments: tuple[tuple[TimelineMark, TimelineMark], ...]
    changes: tuple[Tick, ...]
    labels: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def timeline(moments: Sequence[Moment], *, low: float = -1.0, high: float = 1.0) -> Timeline:
    """Lay out moments in order, within ``low`` to ``high``."""
    values = [
        v
        for moment in moments
        if moment.value is not None
        for v in (moment.value, moment.low, moment.high)
        if v is not None
    ]
    axis = axis_around(values, low=low, high=high)

    def y_position(value: float | None) -> str:
        if value is None:
            return ""
        share = float(axis.position(value).rstrip("%"))
        return f"{100 - MARGIN - share * (100 - 2 * MARGIN) / 100:.2f}%"

    last = max(len(moments) - 1, 1)
    places = [
        MARGIN + (100 - 2 * MARGIN) * (index / last if len(moments) > 1 else 0.5) for index in range(len(moments))
    ]
    marks = tuple(
        TimelineMark(
            moment,
            f"{x:.2f}%",
            y_position(moment.value),
            *_ends(moment, y_position(moment.low), y_position(moment.high)),
        )
        for moment, x in zip(moments, places, strict=True)
    )
    pairs = pairwise(marks)
    changes = [
        Tick(f"{(places[index - 1] + places[index]) / 2:.2f}%", moment.change)
        for index, moment in enumerate(moments)
        if moment.change and index
    ]
    step = (axis.high - axis.low) / (len(axis.ticks) - 1)
    return Timeline(
        marks=marks,
        segments=tuple((left, right) for left, right in pairs if left.y and right.y and not right.moment.change),
        changes=_spaced(changes),
        labels=tuple(Tick(marks[index].x, marks[index].moment.label) for index in _labelled(len(marks))),
        y_ticks=tuple(
            Tick(y_position(axis.low + step * index), tick.text.replace("-", MINUS))
            for index, tick in enumerate(axis.ticks)
        ),
    )


def _spaced(changes: Sequence[Tick]) -> tuple[Tick, ...]:
    """Keep every change line, but drop its text if it would overlap the previous one. The table lists all texts."""
    ticks: list[Tick] = []
    next_free = 0.0
    for change in changes:
        position = float(change.position.rstrip("%"))
        ticks.append(change if position >= next_free else Tick(change.position, ""))
        next_free = position + MIN_GAP if position >= next_free else next_free
    return tuple(ticks)


def _ends(moment: Moment, low: str, high: str) -> tuple[str, str]:
    return (low, high) if moment.value is not None and low and high else ("", "")


def _labelled(count: int) -> list[int]:
    """Indices of labelled moments: first, last, and the exact middle if there is one."""
    return sorted({0, count // 2, count - 1} if count % 2 else {0, count - 1}) if count else []
