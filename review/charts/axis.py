"""Positions of marks in a chart, in percent: on an axis with readable ticks, in a square plane, on a scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.scales import Scale

STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 50.0)
MAX_TICKS = 6

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position, such as ``12.50%``."""

    position: str
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A closed range of values over the full width."""

    low: float
    high: float
    step: float

    def position(self, value: float) -> str:
        """Position of a value in percent. Values outside the range are clamped."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{100 * share:.2f}%"

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Labelled positions from the lower to the upper end."""
        decimals = max(0, -math.floor(math.log10(self.step) + 1e-9))
        if self.step == 0.25:
            decimals = 2
        count = round((self.high - self.low) / self.step)
        values = [self.low + i * self.step for i in range(count + 1)]
        return tuple(Tick(self.position(v), f"{v:.{decimals}f}") for v in values)


def axis_around(values: Sequence[float], *, low: float = 0.0, high: float = 1.0) -> Axis:
    """Smallest readable axis that holds all values, within ``low`` to ``high``.

    It covers at least a tenth of the scale, so that small differences do not look large.

    :raises ValueError: for an empty scale."""
    if not low < high:
        raise ValueError(f"an axis from {low} to {high} is empty")
    clamped = [min(max(v, low), high) for v in values] or [low, high]
    min_span = 0.1 * (high - low)
    for step in STEPS:
        start = max(low, math.floor((min(clamped) - step / 4) / step + 1e-9) * step)
        end = min(high, math.ceil((max(clamped) + step / 4) / step - 1e-9) * step)
        if (end - start) / step <= MAX_TICKS - 1 + 1e-9 and end - start >= min_span - 1e-9:
            return Axis(start, end, step)
    return Axis(low, high, (high - low) / (MAX_TICKS - 1))


# Margin in percent, so that marks at the ends of the scale are not cut off.
MARGIN = 7.0
MAX_LEVELS = 11


@dataclass(frozen=True, slots=True)
class Plane:
    """A square plot. ``levels`` are those of the scale, empty for a continuous one.

    :raises ValueError: for an empty scale."""

    low: float
    high: float
    levels: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"a plane from {self.low} to {self.high} is empty")

    def from_left(self, value: float) -> str:
        """Position from the left in percent. Values outside the scale are clamped."""
        return f"{self._percent(value):.2f}%"

    def from_top(self, value: float) -> str:
        """Position from the top in percent. Higher values are higher up."""
        return f"{100.0 - self._percent(value):.2f}%"

    @property
    def x_ticks(self) -> tuple[Tick, ...]:
        """Labelled positions from left to right."""
        return tuple(Tick(self.from_left(value), text) for value, text in self._marks())

    @property
    def y_ticks(self) -> tuple[Tick, ...]:
        """Labelled positions from bottom to top."""
        return tuple(Tick(self.from_top(value), text) for value, text in self._marks())

    def _marks(self) -> list[tuple[float, str]]:
        if 0 < len(self.levels) <= MAX_LEVELS:
            return [(level, f"{level:g}") for level in self.levels]
        axis = axis_around([self.low, self.high], low=self.low, high=self.high)
        count = round((axis.high - axis.low) / axis.step)
        values = [axis.low + index * axis.step for index in range(count + 1)]
        return [(value, tick.text) for value, tick in zip(values, axis.ticks, strict=True)]

    def _percent(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return MARGIN + share * (100.0 - 2.0 * MARGIN)


# Share of the scale at each end within which a centred label would be cut off.
EDGE_SHARE = 0.15
# Margin in percent, so that marks and labels are not cut off.
LINE_MARGIN = 5.0


@dataclass(frozen=True, slots=True)
class ScaleLine:
    """Positions in percent of the expert's value, the judge's value and the scale's levels.

    ``judge_anchor`` (``start``, ``middle`` or ``end``) keeps the judge's label inside the picture."""

    start: str
    end: str
    levels: tuple[Tick, ...]
    expert: str
    judge: str
    expert_text: str
    judge_text: str
    judge_anchor: str


def scale_line(scale: Scale, *, expert: float, judge: float) -> ScaleLine:
    """Lay out both values on an ordered scale.

    :raises ValueError: for a class scale, which has no order."""
    if scale.width <= 0:
        raise ValueError(f"{scale} has no order to draw")

    def share(value: float) -> float:
        return (min(max(value, scale.low), scale.high) - scale.low) / scale.width

    def position(value: float) -> str:
        return f"{LINE_MARGIN + share(value) * (100 - 2 * LINE_MARGIN):.2f}%"

    marks = [float(v) for v in scale.levels] or [scale.low, (scale.low + scale.high) / 2, scale.high]
    levels = tuple(Tick(position(v), f"{v:g}") for v in marks)
    anchor = "start" if share(judge) < EDGE_SHARE else "end" if share(judge) > 1 - EDGE_SHARE else "middle"
    ends = position(scale.low), position(scale.high)
    return ScaleLine(*ends, levels, position(expert), position(judge), f"{expert:g}", f"{judge:g}", anchor)
