"""Which chunks of a corpus are asked about, as rows of cells: a row a document, a cell a chunk or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CELL, GAP, PER_ROW = 9, 2, 60
SHADES = (0, 1, 2, 4)  # from so many questions on


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """A square: where it stands, and its shade from 0 (nobody asks) to 3."""

    x: int
    y: int
    shade: int


@dataclass(frozen=True, slots=True)
class CoverageMap:
    """The cells of a document in a field of ``width`` and ``height``; each stands for ``per_cell`` chunks, and has the
    shade of the one that is asked about most."""

    cells: tuple[CoverageCell, ...]
    width: int
    height: int
    per_cell: int


MOST_CELLS = 600  # of a document


def coverage_map(touched: Sequence[int]) -> CoverageMap:
    """Draw how many questions name each chunk."""
    per_cell = max(1, -(-len(touched) // MOST_CELLS))
    grouped = [max(touched[first : first + per_cell]) for first in range(0, len(touched), per_cell)]
    step = CELL + GAP
    cells = tuple(
        CoverageCell(place % PER_ROW * step, place // PER_ROW * step, _shade(count))
        for place, count in enumerate(grouped)
    )
    rows = -(-len(grouped) // PER_ROW)
    return CoverageMap(cells, min(len(grouped), PER_ROW) * step - GAP, rows * step - GAP, per_cell)


def _shade(count: int) -> int:
    return sum(count >= least for least in SHADES) - 1
