"""The horizontal axis of a chart: a readable range around the values, its ticks, and positions in percent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
