"""The confusion matrix as a grid: darker cells hold a larger share of their row, the diagonal is outlined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from review.charts.axis import Tick

SHADES = 4
MOST_CATEGORIES = 11  # more do not fit on a phone; the table shows them


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, in percent of the grid; ``shade`` is 0 for an empty one up to 4 for (nearly) its whole row."""

    x: str
    y: str
    middle_x: str
    middle_y: str
    count: float
    shade: int
    same: bool


@dataclass(frozen=True, slots=True)
class ConfusionGrid:
    """Cells row by row; ``size`` is the width and height of each."""

    cells: tuple[Cell, ...]
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    size: str


def confusion_grid(matrix: Sequence[Sequence[float]], labels: Sequence[str]) -> ConfusionGrid | None:
    """The grid of a matrix with experts in rows; ``None`` where it has too many categories to be read.

    :raises ValueError: for a matrix that is not square or has another number of labels.
    """
    count = len(labels)
    if len(matrix) != count or any(len(row) != count for row in matrix):
        raise ValueError("a confusion matrix has one row and one column for each label")
    if not 1 < count <= MOST_CATEGORIES:
        return None
    size = 100.0 / count
    middles = [f"{(place + 0.5) * size:.2f}%" for place in range(count)]
    cells = tuple(
        Cell(
            x=f"{column * size:.2f}%",
            y=f"{row * size:.2f}%",
            middle_x=middles[column],
            middle_y=middles[row],
            count=value,
            shade=_shade(value, sum(values)),
            same=row == column,
        )
        for row, values in enumerate(matrix)
        for column, value in enumerate(values)
    )
    ticks = tuple(Tick(at, label) for at, label in zip(middles, labels, strict=True))
    return ConfusionGrid(cells, ticks, ticks, f"{size:.2f}%")


def _shade(value: float, total: float) -> int:
    return math.ceil(SHADES * value / total - 1e-9) if value > 0 and total > 0 else 0
