"""A square field with the same scale along both sides, for what one side gave beside what the other gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from review.charts.axis import Tick, axis_around

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
