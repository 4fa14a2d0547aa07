"""Where marks stand in a chart, in percent: along an axis with readable ticks, in a square field, on a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.scales import Scale

STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 50.0)
MOST_TICKS = 6

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place on the axis; ``at`` is a position such as ``12.50%``."""

    at: str
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A closed range of values drawn over the full width."""

    low: float
    high: float
    step: float

    def at(self, value: float) -> str:
        """The position of a value in percent; values beyond the range stand at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{100 * share:.2f}%"

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """The labelled places from the lower to the upper end."""
        places = max(0, -math.floor(math.log10(self.step) + 1e-9))
        if self.step == 0.25:
            places = 2
        count = round((self.high - self.low) / self.step)
        values = [self.low + i * self.step for i in range(count + 1)]
        return tuple(Tick(self.at(v), f"{v:.{places}f}") for v in values)


def axis_around(values: Sequence[float], *, low: float = 0.0, high: float = 1.0) -> Axis:
    """The smallest readable axis that holds all values, within ``low`` to ``high``.

    It covers at least a tenth of the scale, so that small differences do not look large.

    :raises ValueError: when the scale is empty.
    """
    if not low < high:
        raise ValueError(f"an axis from {low} to {high} is empty")
    held = [min(max(v, low), high) for v in values] or [low, high]
    least = 0.1 * (high - low)
    for step in STEPS:
        start = max(low, math.floor((min(held) - step / 4) / step + 1e-9) * step)
        end = min(high, math.ceil((max(held) + step / 4) / step - 1e-9) * step)
        if (end - start) / step <= MOST_TICKS - 1 + 1e-9 and end - start >= least - 1e-9:
            return Axis(start, end, step)
    return Axis(low, high, (high - low) / (MOST_TICKS - 1))


MARGIN = 7.0  # percent left free at every edge, so that marks on the ends of the scale are not cut off
MOST_LEVELS = 11


@dataclass(frozen=True, slots=True)
class Plane:
    """The field; ``levels`` are the scale's own, nothing for a continuous one.

    :raises ValueError: for an empty scale.
    """

    low: float
    high: float
    levels: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"a plane from {self.low} to {self.high} is empty")

    def across(self, value: float) -> str:
        """The position of a value from the left, in percent; values beyond the scale stand at its end."""
        return f"{self._share(value):.2f}%"

    def down(self, value: float) -> str:
        """The position of a value from the top: higher values stand higher."""
        return f"{100.0 - self._share(value):.2f}%"

    @property
    def across_ticks(self) -> tuple[Tick, ...]:
        """Labelled places from left to right."""
        return tuple(Tick(self.across(value), text) for value, text in self._marks())

    @property
    def down_ticks(self) -> tuple[Tick, ...]:
        """Labelled places from the bottom to the top."""
        return tuple(Tick(self.down(value), text) for value, text in self._marks())

    def _marks(self) -> list[tuple[float, str]]:
        if 0 < len(self.levels) <= MOST_LEVELS:
            return [(level, f"{level:g}") for level in self.levels]
        axis = axis_around([self.low, self.high], low=self.low, high=self.high)
        count = round((axis.high - axis.low) / axis.step)
        values = [axis.low + place * axis.step for place in range(count + 1)]
        return [(value, tick.text) for value, tick in zip(values, axis.ticks, strict=True)]

    def _share(self, value: float) -> float:
        inside = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return MARGIN + inside * (100.0 - 2.0 * MARGIN)


NEAR_THE_END = 0.15  # share of the scale from its ends within which the judge's name would stick out
LINE_MARGIN = 5.0  # percent left free at both ends, so that marks and labels are not cut off


@dataclass(frozen=True, slots=True)
class ScaleLine:
    """Positions in percent of the expert's and the judge's value and of the scale's levels. ``judge_anchor`` keeps the
    judge's name inside the picture: ``start``, ``middle`` or ``end``."""

    start: str
    end: str
    levels: tuple[Tick, ...]
    expert: str
    judge: str
    expert_text: str
    judge_text: str
    judge_anchor: str


def scale_line(scale: Scale, *, expert: float, judge: float) -> ScaleLine:
    """Lay both values out on a scale with a width.

    :raises ValueError: for a class scale, which has no order.
    """
    if scale.width <= 0:
        raise ValueError(f"{scale} has no order to draw")

    def share(value: float) -> float:
        return (min(max(value, scale.low), scale.high) - scale.low) / scale.width

    def at(value: float) -> str:
        return f"{LINE_MARGIN + share(value) * (100 - 2 * LINE_MARGIN):.2f}%"

    marks = [float(v) for v in scale.levels] or [scale.low, (scale.low + scale.high) / 2, scale.high]
    levels = tuple(Tick(at(v), f"{v:g}") for v in marks)
    anchor = "start" if share(judge) < NEAR_THE_END else "end" if share(judge) > 1 - NEAR_THE_END else "middle"
    ends = at(scale.low), at(scale.high)
    return ScaleLine(*ends, levels, at(expert), at(judge), f"{expert:g}", f"{judge:g}", anchor)
