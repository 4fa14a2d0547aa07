"""Rows of intervals: a run's figures, differences around a line at nothing, and a figure run after run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from review.charts.axis import MINUS, Axis, Tick, axis_around


class Shape(StrEnum):
    """Who says so: shape and colour are the same on every page."""

    EXPERT = "expert"
    JUDGE = "judge"
    CORRECTED = "corrected"
    PLAIN = "plain-mark"


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval; ``low`` and ``high`` are ``None`` where it has none."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ForestRow:
    """What a row shows. Without a figure it needs ``withheld``, the reason in words."""

    label: str
    shape: Shape
    figure: Figure | None
    note: str = ""
    count: int | None = None
    withheld: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A row with positions in percent and its texts."""

    row: ForestRow
    at: str
    start: str
    end: str
    value: str
    interval: str


@dataclass(frozen=True, slots=True)
class Forest:
    """A drawn plot: rows from top to bottom over one axis. ``tall`` gives rows room for a second line."""

    rows: tuple[Drawn, ...]
    ticks: tuple[Tick, ...]
    tall: bool

    @property
    def has_figures(self) -> bool:
        """Whether any row has a figure, so that the axis means something."""
        return any(drawn.row.figure for drawn in self.rows)


def forest(
    rows: Sequence[ForestRow], *, low: float = 0.0, high: float = 1.0, decimals: int = 2, tall: bool = False
) -> Forest:
    """Lay the rows out on a common axis within the scale ``low`` to ``high``.

    :raises ValueError: for a row with neither a figure nor a reason.
    """
    axis = axis_around(_values(rows), low=low, high=high)
    return Forest(tuple(_drawn(row, axis, decimals) for row in rows), axis.ticks, tall)


def _values(rows: Sequence[ForestRow]) -> list[float]:
    figures = [row.figure for row in rows if row.figure]
    return [v for f in figures for v in (f.value, f.low, f.high) if v is not None]


def _drawn(row: ForestRow, axis: Axis, decimals: int) -> Drawn:
    figure = row.figure
    if figure is None:
        if not row.withheld:
            raise ValueError(f"row {row.label!r} has neither a figure nor a reason")
        return Drawn(row, "", "", "", "", "")
    low, high = figure.low, figure.high
    interval = "" if low is None or high is None else f"{low:.{decimals}f}–{high:.{decimals}f}"
    start, end = ("", "") if low is None or high is None else (axis.at(low), axis.at(high))
    return Drawn(row, axis.at(figure.value), start, end, f"{figure.value:.{decimals}f}", interval)


@dataclass(frozen=True, slots=True)
class Difference:
    """A row: the difference (as a share of the scale, or in its units) with its interval, and the texts that stand
    beside it. Without a ``value`` there is a reason in ``withheld``."""

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
    """A row with positions in percent; empty where there is nothing to draw."""

    row: Difference
    at: str
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class Differences:
    """A drawn plot; ``zero`` is the position of no difference."""

    rows: tuple[DrawnDifference, ...]
    ticks: tuple[Tick, ...]
    zero: str


def differences(rows: Sequence[Difference], reach: float = 1.0) -> Differences:
    """Lay the rows out on one axis that holds the line at nothing, within ``-reach`` to ``reach``: 1 for shares of the
    scale, the scale's width for differences in its units."""
    values = [v for row in rows if row.value is not None for v in (row.value, row.low, row.high) if v is not None]
    axis = axis_around([0.0, *values], low=-reach, high=reach)
    drawn = tuple(
        DrawnDifference(
            row,
            "" if row.value is None else axis.at(row.value),
            "" if row.value is None or row.low is None else axis.at(row.low),
            "" if row.value is None or row.high is None else axis.at(row.high),
        )
        for row in rows
    )
    return Differences(drawn, tuple(Tick(t.at, t.text.replace("-", MINUS)) for t in axis.ticks), axis.at(0.0))


MARGIN = 6.0  # percent left free at both ends
LEAST_GAP = 34.0  # percent between the words of two changes, so that they do not run into each other there


@dataclass(frozen=True, slots=True)
class Moment:
    """A figure at a time. ``value`` is ``None`` where it is undefined; ``change`` says what is new since the moment
    before, empty for nothing."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    change: str = ""


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """A drawn moment; without a figure only its place ``x``. ``bottom`` and ``top``: its interval."""

    moment: Moment
    x: str
    y: str
    bottom: str
    top: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Marks from left to right at equal steps. ``segments`` join neighbours with a figure and no change between them;
    ``changes`` are the places of the lines, each halfway before the moment that brought it,
    with words where there is room."""

    marks: tuple[TimelineMark, ...]
    segments: tuple[tuple[TimelineMark, TimelineMark], ...]
    changes: tuple[Tick, ...]
    labels: tuple[Tick, ...]
    down: tuple[Tick, ...]


def timeline(moments: Sequence[Moment], *, low: float = -1.0, high: float = 1.0) -> Timeline:
    """Lay out the moments in the order given, within the figure's range ``low`` to ``high``."""
    values = [v for one in moments if one.value is not None for v in (one.value, one.low, one.high) if v is not None]
    axis = axis_around(values, low=low, high=high)

    def down(value: float | None) -> str:
        if value is None:
            return ""
        share = float(axis.at(value).rstrip("%"))
        return f"{100 - MARGIN - share * (100 - 2 * MARGIN) / 100:.2f}%"

    last = max(len(moments) - 1, 1)
    places = [MARGIN + (100 - 2 * MARGIN) * (at / last if len(moments) > 1 else 0.5) for at in range(len(moments))]
    marks = tuple(
        TimelineMark(one, f"{x:.2f}%", down(one.value), *_ends(one, down(one.low), down(one.high)))
        for one, x in zip(moments, places, strict=True)
    )
    pairs = pairwise(marks)
    changes = [
        Tick(f"{(places[at - 1] + places[at]) / 2:.2f}%", one.change)
        for at, one in enumerate(moments)
        if one.change and at
    ]
    step = (axis.high - axis.low) / (len(axis.ticks) - 1)
    return Timeline(
        marks=marks,
        segments=tuple((one, two) for one, two in pairs if one.y and two.y and not two.moment.change),
        changes=_spaced(changes),
        labels=tuple(Tick(marks[at].x, marks[at].moment.label) for at in _labelled(len(marks))),
        down=tuple(
            Tick(down(axis.low + step * at), tick.text.replace("-", MINUS)) for at, tick in enumerate(axis.ticks)
        ),
    )


def _spaced(changes: Sequence[Tick]) -> tuple[Tick, ...]:
    """Every change keeps its line; one too near the words before it loses its own, which the table has."""
    found: list[Tick] = []
    free = 0.0
    for one in changes:
        at = float(one.at.rstrip("%"))
        found.append(one if at >= free else Tick(one.at, ""))
        free = at + LEAST_GAP if at >= free else free
    return tuple(found)


def _ends(moment: Moment, low: str, high: str) -> tuple[str, str]:
    return (low, high) if moment.value is not None and low and high else ("", "")


def _labelled(count: int) -> list[int]:
    """Which moments get a label: the first, the last, and the one right between them where there is one."""
    return sorted({0, count // 2, count - 1} if count % 2 else {0, count - 1}) if count else []
