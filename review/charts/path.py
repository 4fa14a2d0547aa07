"""A path through a graph as a picture: entities in boxes, with arrows that say how they are related."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.graph import Relation

LETTER, PAD, HEIGHT, GAP, ROW = 7.5, 10.0, 28.0, 96.0, 64.0
WIDEST, SHORT, SAID = 640.0, 22, 14  # of a row; letters of an entity and of a relation
MOST_STEPS = 12


@dataclass(frozen=True, slots=True)
class Box:
    """An entity with its place; ``shown`` is its name, cut where it is long."""

    x: float
    y: float
    width: float
    name: str
    shown: str

    @property
    def line(self) -> float:
        """The line its name stands on."""
        return self.y + 18.0

    @property
    def middle(self) -> float:
        """Where its name stands."""
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line from one box to the next; ``x`` and ``y`` is where ``shown`` stands above it."""

    x1: float
    y1: float
    x2: float
    y2: float
    x: float
    y: float
    shown: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of ``width`` and ``height``; ``left_out`` steps did not fit."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    left_out: int


def drawn(path: Sequence[Relation]) -> Drawing:
    """The path from left to right, in rows."""
    steps = path[:MOST_STEPS]
    names = [steps[0].source, *(one.target for one in steps)]
    boxes: list[Box] = []
    x = y = 0.0
    for name in names:
        shown = _cut(name, SHORT)
        width = sum(_wide(letter) for letter in shown) + 2 * PAD
        if boxes and x + width > WIDEST:
            x, y = 0.0, y + ROW
        boxes.append(Box(x, y + 16.0, width, name, shown))
        x += width + GAP
    arrows = [_arrow(one, other, step.by) for one, other, step in zip(boxes, boxes[1:], steps, strict=False)]
    right = max(box.x + box.width for box in boxes)
    return Drawing(right + 2.0, y + 16.0 + HEIGHT + 2.0, tuple(boxes), tuple(arrows), len(path) - len(steps))


def _arrow(one: Box, other: Box, by: str) -> Arrow:
    shown = _cut(by, SAID)
    if one.y == other.y:
        level, right = one.y + HEIGHT / 2, one.x + one.width
        return Arrow(right, level, other.x - 6.0, level, (right + other.x) / 2, level - 6.0, shown)
    below = one.y + HEIGHT
    return Arrow(one.middle, below, other.middle, other.y - 6.0, (one.middle + other.middle) / 2, below + 16.0, shown)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _wide(letter: str) -> float:
    return LETTER * (1.7 if ord(letter) >= 0x1100 else 1.0)
