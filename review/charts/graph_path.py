"""Drawing of a path through a graph: entities in boxes, connected by labelled arrows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.graph import Relation

LETTER, PAD, HEIGHT, GAP, ROW = 7.5, 10.0, 28.0, 96.0, 64.0
# Width of a row in pixels; letters of an entity's and of a relation's label.
MAX_ROW_WIDTH, ENTITY_LETTERS, RELATION_LETTERS = 640.0, 22, 14
MAX_STEPS = 12


@dataclass(frozen=True, slots=True)
class Box:
    """An entity with its position. ``label`` is its name, cut if it is long."""

    x: float
    y: float
    width: float
    name: str
    label: str

    @property
    def line(self) -> float:
        """Baseline of the label."""
        return self.y + 18.0

    @property
    def middle(self) -> float:
        """Horizontal centre of the label."""
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line between two boxes. ``label`` is at ``x`` and ``y`` above it."""

    x1: float
    y1: float
    x2: float
    y2: float
    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing of ``width`` and ``height``. ``left_out`` steps did not fit."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    left_out: int


def draw_path(path: Sequence[Relation]) -> Drawing:
    """Lay out the path from left to right, in rows."""
    steps = path[:MAX_STEPS]
    names = [steps[0].source, *(step.target for step in steps)]
    boxes: list[Box] = []
    x = y = 0.0
    for name in names:
        label = _cut(name, ENTITY_LETTERS)
        width = sum(_letter_width(letter) for letter in label) + 2 * PAD
        if boxes and x + width > MAX_ROW_WIDTH:
            x, y = 0.0, y + ROW
        boxes.append(Box(x, y + 16.0, width, name, label))
        x += width + GAP
    arrows = [_arrow(box, next_box, step.label) for box, next_box, step in zip(boxes, boxes[1:], steps, strict=False)]
    right = max(box.x + box.width for box in boxes)
    return Drawing(right + 2.0, y + 16.0 + HEIGHT + 2.0, tuple(boxes), tuple(arrows), len(path) - len(steps))


def _arrow(source: Box, target: Box, by: str) -> Arrow:
    label = _cut(by, RELATION_LETTERS)
    if source.y == target.y:
        level, right = source.y + HEIGHT / 2, source.x + source.width
        return Arrow(right, level, target.x - 6.0, level, (right + target.x) / 2, level - 6.0, label)
    below = source.y + HEIGHT
    return Arrow(
        source.middle, below, target.middle, target.y - 6.0, (source.middle + target.middle) / 2, below + 16.0, label
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _letter_width(letter: str) -> float:
    return LETTER * (1.7 if ord(letter) >= 0x1100 else 1.0)
