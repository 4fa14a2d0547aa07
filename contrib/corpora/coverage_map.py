"""Layout of the coverage map of a document: cells in rows, each for one or more chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CELL, GAP, PER_ROW = 9, 2, 60
# Minimum number of questions of each shade.
SHADE_THRESHOLDS = (0, 1, 2, 4)


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """A square with its position and its shade from 0 (no question) to 3."""

    x: int
    y: int
    shade: int


@dataclass(frozen=True, slots=True)
class CoverageMap:
    """The cells of a document in a drawing of ``width`` and ``height``.

    Each cell stands for ``per_cell`` chunks and has the shade of the one with the most questions."""

    cells: tuple[CoverageCell, ...]
    width: int
    height: int
    per_cell: int


# Cells of one document.
MAX_CELLS = 600


def coverage_map(counts: Sequence[int]) -> CoverageMap:
    """Lay out the map of a document from the number of questions for each chunk."""
    per_cell = max(1, -(-len(counts) // MAX_CELLS))
    grouped = [max(counts[first : first + per_cell]) for first in range(0, len(counts), per_cell)]
    step = CELL + GAP
    cells = tuple(
        CoverageCell(index % PER_ROW * step, index // PER_ROW * step, _shade(count))
        for index, count in enumerate(grouped)
    )
    rows = -(-len(grouped) // PER_ROW)
    return CoverageMap(cells, min(len(grouped), PER_ROW) * step - GAP, rows * step - GAP, per_cell)


def _shade(count: int) -> int:
    return sum(count >= threshold for threshold in SHADE_THRESHOLDS) - 1
