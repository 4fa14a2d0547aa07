"""Expert and judge on the metric's scale, as the reveal shows them."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.core.registry import Scale
from review.charts.axis import Tick

NEAR_THE_END = 0.15  # share of the scale from its ends within which the judge's name would stick out
MARGIN = 5.0  # percent left free at both ends, so that marks and labels are not cut off


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
        return f"{MARGIN + share(value) * (100 - 2 * MARGIN):.2f}%"

    marks = [float(v) for v in scale.levels] or [scale.low, (scale.low + scale.high) / 2, scale.high]
    levels = tuple(Tick(at(v), f"{v:g}") for v in marks)
    anchor = "start" if share(judge) < NEAR_THE_END else "end" if share(judge) > 1 - NEAR_THE_END else "middle"
    ends = at(scale.low), at(scale.high)
    return ScaleLine(*ends, levels, at(expert), at(judge), f"{expert:g}", f"{judge:g}", anchor)
