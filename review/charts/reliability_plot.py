"""The reliability curve: the experts' mean, with its interval, where the judge gave a certain value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from review.charts.axis import Tick
from review.charts.plane import Plane


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
