"""Curves over 1, 2, 3 and so on, with values between 0 and 1, as polylines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Size of the plot area.
WIDTH, HEIGHT = 320.0, 180.0
_X_TICKS = (1, 2, 3, 5, 10, 20, 30, 40, 50)
# Number of distinguishable line styles.
STYLES = 6


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve: name, style number (from 0) and points. ``dots`` are its points if there are few."""

    name: str
    style: int
    points: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class CurveTick:
    position: float
    text: str


@dataclass(frozen=True, slots=True)
class CurveChart:
    """Curves with the ticks of both axes."""

    curves: tuple[Curve, ...]
    x_ticks: tuple[CurveTick, ...]
    y_ticks: tuple[CurveTick, ...]


def curve_chart(lines: Sequence[tuple[str, Sequence[float]]]) -> CurveChart:
    """Lay out named values at 1, 2, 3 and so on, for the first ``STYLES`` curves.

    :raises ValueError: without a value."""
    length = max(len(values) for _, values in lines)
    places = [_x(number, length) for number in range(1, length + 1)]
    curves = []
    for style, (name, values) in enumerate(lines[:STYLES]):
        points = [(x, round(HEIGHT * (1 - value), 1)) for x, value in zip(places, values, strict=False)]
        dots = tuple(points) if length <= _X_TICKS[4] else ()
        curves.append(Curve(name, style, " ".join(f"{x},{y}" for x, y in points), dots))
    x_ticks = tuple(
        CurveTick(_x(tick, length), str(tick)) for tick in _X_TICKS if tick <= length and _fits(tick, length)
    )
    y_ticks = tuple(CurveTick(round(HEIGHT * (1 - share / 4), 1), f"{share / 4:g}") for share in range(5))
    return CurveChart(tuple(curves), x_ticks, y_ticks)


def _x(number: int, length: int) -> float:
    return round(WIDTH * (number - 1) / (length - 1), 1) if length > 1 else WIDTH / 2


def _fits(tick: int, length: int) -> bool:
    """Return whether the label does not overlap the previous one."""
    return tick == 1 or length <= _X_TICKS[4] or tick not in _X_TICKS[1:3]
