"""Plots of judge values against expert values: bubbles, reliability curve, and confusion matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from review.charts.axis import Plane, Tick

# In pixels.
MIN_RADIUS, MAX_RADIUS = 2.5, 15.0


@dataclass(frozen=True, slots=True)
class Bubble:
    """Answers with one pair of values: experts on the x axis, judge on the y axis. ``radius`` is in pixels."""

    x: str
    y: str
    radius: str
    expert: float
    judge: float
    count: int


@dataclass(frozen=True, slots=True)
class JudgeAgainstExpert:
    """Bubbles, with large ones first so that small ones stay visible. The diagonal from ``start`` to ``end`` marks
    equal values."""

    bubbles: tuple[Bubble, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    start: tuple[str, str]
    end: tuple[str, str]


def judge_against_expert(places: Sequence[tuple[float, float, int]], plane: Plane) -> JudgeAgainstExpert:
    """Lay out ``(expert, judge, answers)``. A bubble's area is proportional to its answers."""
    max_count = max((count for _, _, count in places), default=1)
    bubbles = tuple(
        Bubble(plane.from_left(expert), plane.from_top(judge), f"{_radius(count, max_count):.1f}", expert, judge, count)
        for expert, judge, count in sorted(places, key=lambda place: -place[2])
    )
    start, end = ((plane.from_left(value), plane.from_top(value)) for value in (plane.low, plane.high))
    return JudgeAgainstExpert(bubbles, plane.x_ticks, plane.y_ticks, start, end)


def _radius(count: int, max_count: int) -> float:
    return max(MIN_RADIUS, MAX_RADIUS * math.sqrt(count / max_count))


@dataclass(frozen=True, slots=True)
class CurveMark:
    """A judge value (x) with the experts' mean (y). ``bottom`` and ``top`` are the ends of its interval, empty without
    one."""

    x: str
    y: str
    bottom: str
    top: str


@dataclass(frozen=True, slots=True)
class ReliabilityPlot:
    """Marks from left to right, joined by ``segments``. On the diagonal, judge values equal the experts' means."""

    marks: tuple[CurveMark, ...]
    segments: tuple[tuple[CurveMark, CurveMark], ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    start: tuple[str, str]
    end: tuple[str, str]


def reliability_plot(
    points: Sequence[tuple[float, float, float | None, float | None]], plane: Plane
) -> ReliabilityPlot:
    """Lay out ``(judge, expert, low, high)`` in the order of the judge's values."""
    marks = tuple(
        CurveMark(
            plane.from_left(judge),
            plane.from_top(expert),
            "" if low is None or high is None else plane.from_top(low),
            "" if low is None or high is None else plane.from_top(high),
        )
        for judge, expert, low, high in points
    )
    start, end = ((plane.from_left(value), plane.from_top(value)) for value in (plane.low, plane.high))
    segments = tuple(pairwise(marks))
    return ReliabilityPlot(marks, segments, plane.x_ticks, plane.y_ticks, start, end)


SHADES = 4
# More categories do not fit on a phone; the table shows them.
MAX_CATEGORIES = 11


@dataclass(frozen=True, slots=True)
class ConfusionCell:
    """A cell with positions in percent of the grid. ``shade`` ranges from 0 (empty) to 4 (nearly the whole row)."""

    x: str
    y: str
    middle_x: str
    middle_y: str
    count: float
    shade: int
    same: bool


@dataclass(frozen=True, slots=True)
class ConfusionGrid:
    """Cells row by row. ``size`` is the width and height of a cell."""

    cells: tuple[ConfusionCell, ...]
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    size: str


def confusion_grid(matrix: Sequence[Sequence[float]], labels: Sequence[str]) -> ConfusionGrid | None:
    """Grid of a confusion matrix with experts in rows. ``None`` if it has too many categories to read.

    :raises ValueError: if the matrix is not square or its size differs from the number of labels."""
    count = len(labels)
    if len(matrix) != count or any(len(row) != count for row in matrix):
        raise ValueError("a confusion matrix has one row and one column for each label")
    if not 1 < count <= MAX_CATEGORIES:
        return None
    size = 100.0 / count
    middles = [f"{(place + 0.5) * size:.2f}%" for place in range(count)]
    cells = tuple(
        ConfusionCell(
            x=f"{column * size:.2f}%",
            y=f"{row * size:.2f}%",
            middle_x=middles[column],
            middle_y=middles[row],
            count=value,
            shade=_shade(value, sum(values)),
            same=row == column,
        )
        for row, values in enumerate(matrix)
        for column, value in enumerate(values)
    )
    ticks = tuple(Tick(position, label) for position, label in zip(middles, labels, strict=True))
    return ConfusionGrid(cells, ticks, ticks, f"{size:.2f}%")


def _shade(value: float, total: float) -> int:
    return math.ceil(SHADES * value / total - 1e-9) if value > 0 and total > 0 else 0
