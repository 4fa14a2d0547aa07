"""The judge's values beside the experts': bubbles, the reliability curve, and the confusion matrix as a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from review.charts.axis import Plane, Tick

SMALLEST, LARGEST = 2.5, 15.0  # pixels


@dataclass(frozen=True, slots=True)
class Bubble:
    """A place with its answers: experts across, judge upwards. ``radius`` is in pixels."""

    x: str
    y: str
    radius: str
    expert: float
    judge: float
    count: int


@dataclass(frozen=True, slots=True)
class JudgeAgainstExpert:
    """Bubbles, large ones first so that small ones lie on top; the diagonal from ``start`` to ``end`` is where both
    gave the same."""

    bubbles: tuple[Bubble, ...]
    across: tuple[Tick, ...]
    down: tuple[Tick, ...]
    start: tuple[str, str]
    end: tuple[str, str]


def judge_against_expert(places: Sequence[tuple[float, float, int]], plane: Plane) -> JudgeAgainstExpert:
    """Lay out ``(expert, judge, answers)``; the area of a bubble grows with its answers."""
    most = max((count for _, _, count in places), default=1)
    bubbles = tuple(
        Bubble(plane.across(expert), plane.down(judge), f"{_radius(count, most):.1f}", expert, judge, count)
        for expert, judge, count in sorted(places, key=lambda place: -place[2])
    )
    start, end = ((plane.across(value), plane.down(value)) for value in (plane.low, plane.high))
    return JudgeAgainstExpert(bubbles, plane.across_ticks, plane.down_ticks, start, end)


def _radius(count: int, most: int) -> float:
    return max(SMALLEST, LARGEST * math.sqrt(count / most))


@dataclass(frozen=True, slots=True)
class CurveMark:
    """One value of the judge (across) and the experts' mean there (upwards); ``bottom`` and ``top`` are the ends of
    its interval, empty without one."""

    x: str
    y: str
    bottom: str
    top: str


@dataclass(frozen=True, slots=True)
class ReliabilityPlot:
    """Marks from left to right, joined by ``segments``; on the diagonal from ``start`` to ``end`` the judge's values
    mean what the experts' do."""

    marks: tuple[CurveMark, ...]
    segments: tuple[tuple[CurveMark, CurveMark], ...]
    across: tuple[Tick, ...]
    down: tuple[Tick, ...]
    start: tuple[str, str]
    end: tuple[str, str]


def reliability_plot(
    points: Sequence[tuple[float, float, float | None, float | None]], plane: Plane
) -> ReliabilityPlot:
    """Lay out ``(judge, expert, low, high)``, in the order of the judge's values."""
    marks = tuple(
        CurveMark(
            plane.across(judge),
            plane.down(expert),
            "" if low is None or high is None else plane.down(low),
            "" if low is None or high is None else plane.down(high),
        )
        for judge, expert, low, high in points
    )
    start, end = ((plane.across(value), plane.down(value)) for value in (plane.low, plane.high))
    segments = tuple(pairwise(marks))
    return ReliabilityPlot(marks, segments, plane.across_ticks, plane.down_ticks, start, end)


SHADES = 4
MOST_CATEGORIES = 11  # more do not fit on a phone; the table shows them


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, in percent of the grid; ``shade`` is 0 for an empty one up to 4 for (nearly) its whole row."""

    x: str
    y: str
    middle_x: str
    middle_y: str
    count: float
    shade: int
    same: bool


@dataclass(frozen=True, slots=True)
class ConfusionGrid:
    """Cells row by row; ``size`` is the width and height of each."""

    cells: tuple[Cell, ...]
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    size: str


def confusion_grid(matrix: Sequence[Sequence[float]], labels: Sequence[str]) -> ConfusionGrid | None:
    """The grid of a matrix with experts in rows; ``None`` where it has too many categories to be read.

    :raises ValueError: for a matrix that is not square or has another number of labels.
    """
    count = len(labels)
    if len(matrix) != count or any(len(row) != count for row in matrix):
        raise ValueError("a confusion matrix has one row and one column for each label")
    if not 1 < count <= MOST_CATEGORIES:
        return None
    size = 100.0 / count
    middles = [f"{(place + 0.5) * size:.2f}%" for place in range(count)]
    cells = tuple(
        Cell(
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
    ticks = tuple(Tick(at, label) for at, label in zip(middles, labels, strict=True))
    return ConfusionGrid(cells, ticks, ticks, f"{size:.2f}%")


def _shade(value: float, total: float) -> int:
    return math.ceil(SHADES * value / total - 1e-9) if value > 0 and total > 0 else 0
