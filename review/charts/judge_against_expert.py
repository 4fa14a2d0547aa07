"""The judge's values beside the experts': a bubble for each place, its area the number of answers there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from review.charts.axis import Tick
from review.charts.plane import Plane

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
