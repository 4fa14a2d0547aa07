"""Forest plots: a figure with its interval per row, or the reason why it is withheld."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from review.charts.axis import Axis, Tick, axis_around


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
