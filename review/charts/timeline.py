"""A figure run after run, with a line where the judge or the rubric changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from review.charts.axis import MINUS, Tick, axis_around

MARGIN = 6.0  # percent left free at both ends
LEAST_GAP = 34.0  # percent between the words of two changes, so that they do not run into each other there


@dataclass(frozen=True, slots=True)
class Moment:
    """A figure at a time. ``value`` is ``None`` where it is undefined; ``change`` says what is new since the moment
    before, empty for nothing."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    change: str = ""


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """A drawn moment; without a figure only its place ``x``. ``bottom`` and ``top``: its interval."""

    moment: Moment
    x: str
    y: str
    bottom: str
    top: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Marks from left to right at equal steps. ``segments`` join neighbours with a figure and no change between them;
    ``changes`` are the places of the lines, each halfway before the moment that brought it,
    with words where there is room."""

    marks: tuple[TimelineMark, ...]
    segments: tuple[tuple[TimelineMark, TimelineMark], ...]
    changes: tuple[Tick, ...]
    labels: tuple[Tick, ...]
    down: tuple[Tick, ...]


def timeline(moments: Sequence[Moment], *, low: float = -1.0, high: float = 1.0) -> Timeline:
    """Lay out the moments in the order given, within the figure's range ``low`` to ``high``."""
    values = [v for one in moments if one.value is not None for v in (one.value, one.low, one.high) if v is not None]
    axis = axis_around(values, low=low, high=high)

    def down(value: float | None) -> str:
        if value is None:
            return ""
        share = float(axis.at(value).rstrip("%"))
        return f"{100 - MARGIN - share * (100 - 2 * MARGIN) / 100:.2f}%"

    last = max(len(moments) - 1, 1)
    places = [MARGIN + (100 - 2 * MARGIN) * (at / last if len(moments) > 1 else 0.5) for at in range(len(moments))]
    marks = tuple(
        TimelineMark(one, f"{x:.2f}%", down(one.value), *_ends(one, down(one.low), down(one.high)))
        for one, x in zip(moments, places, strict=True)
    )
    pairs = pairwise(marks)
    changes = [
        Tick(f"{(places[at - 1] + places[at]) / 2:.2f}%", one.change)
        for at, one in enumerate(moments)
        if one.change and at
    ]
    step = (axis.high - axis.low) / (len(axis.ticks) - 1)
    return Timeline(
        marks=marks,
        segments=tuple((one, two) for one, two in pairs if one.y and two.y and not two.moment.change),
        changes=_spaced(changes),
        labels=tuple(Tick(marks[at].x, marks[at].moment.label) for at in _labelled(len(marks))),
        down=tuple(
            Tick(down(axis.low + step * at), tick.text.replace("-", MINUS)) for at, tick in enumerate(axis.ticks)
        ),
    )


def _spaced(changes: Sequence[Tick]) -> tuple[Tick, ...]:
    """Every change keeps its line; one too near the words before it loses its own, which the table has."""
    found: list[Tick] = []
    free = 0.0
    for one in changes:
        at = float(one.at.rstrip("%"))
        found.append(one if at >= free else Tick(one.at, ""))
        free = at + LEAST_GAP if at >= free else free
    return tuple(found)


def _ends(moment: Moment, low: str, high: str) -> tuple[str, str]:
    return (low, high) if moment.value is not None and low and high else ("", "")


def _labelled(count: int) -> list[int]:
    """Which moments get a label: the first, the last, and the one right between them where there is one."""
    return sorted({0, count // 2, count - 1} if count % 2 else {0, count - 1}) if count else []
