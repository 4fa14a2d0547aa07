"""Differences with their intervals around a line at nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from review.charts.axis import MINUS, Tick, axis_around


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
