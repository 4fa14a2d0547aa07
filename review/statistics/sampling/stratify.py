"""Strata by judge score and category, none too small to say anything about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.sampling.member import Member

FAILED = "failed"
MOST_SCORES = 10  # more different scores than this are cut into quarters of the frame
UNSCORED = -1


@dataclass(frozen=True, slots=True)
class Cell:
    """Answers of one category whose judge scores lie in one band; merging makes larger ones."""

    categories: tuple[str, ...]
    first: int
    last: int
    keys: tuple[int, ...]

    def merged(self, other: Cell) -> Cell:
        """Both cells as one."""
        return Cell(
            tuple(sorted({*self.categories, *other.categories})),
            min(self.first, other.first),
            max(self.last, other.last),
            (*self.keys, *other.keys),
        )


def stratify(members: Sequence[Member], merge_below: float, most: int | None = None) -> dict[int, str]:
    """The stratum of every member, by key: judge score x category.

    Answers the judge failed on are one stratum, never merged. Of the others, cells below ``merge_below`` (a share of
    the frame) are merged with the neighbouring score of their category, then with another category; so are the
    smallest ones while there are more than ``most`` strata.
    """
    failed = [member.key for member in members if member.failed]
    bands, reach = _bands(members)
    cells = _cells(members, bands)
    least = merge_below * len(members)
    allowed = None if most is None else max(1, most - bool(failed))
    while len(cells) > 1:
        smallest = min(cells, key=lambda cell: (len(cell.keys), cell.categories, cell.first))
        if len(smallest.keys) >= least and (allowed is None or len(cells) <= allowed):
            break
        cells = _absorb(cells, smallest)
    strata = dict.fromkeys(failed, FAILED)
    for cell in cells:
        strata |= dict.fromkeys(cell.keys, _name(cell, reach, len(cells)))
    return strata


def _bands(members: Sequence[Member]) -> tuple[dict[int, int], list[tuple[float, float]]]:
    """The score band of each member that did not fail, and from where to where each band goes, low to high."""
    scores = sorted({member.judge_score for member in members if member.judge_score is not None and not member.failed})
    if len(scores) <= MOST_SCORES:
        edges = scores
        ends = scores
    else:
        every = [member.judge_score for member in members if member.judge_score is not None and not member.failed]
        edges = sorted({float(edge) for edge in np.quantile(every, [0.0, 0.25, 0.5, 0.75], method="lower")})
        ends = [*edges[1:], scores[-1]]
    found = {
        member.key: UNSCORED
        if member.judge_score is None
        else int(np.searchsorted(edges, member.judge_score, side="right")) - 1
        for member in members
        if not member.failed
    }
    return found, list(zip(edges, ends, strict=True))


def _cells(members: Sequence[Member], bands: dict[int, int]) -> list[Cell]:
    content: dict[tuple[str, int], list[int]] = {}
    for member in members:
        if member.key in bands:
            content.setdefault((member.category, bands[member.key]), []).append(member.key)
    return [Cell((category,), band, band, tuple(keys)) for (category, band), keys in sorted(content.items())]


def _absorb(cells: list[Cell], small: Cell) -> list[Cell]:
    """Merge a small cell with its nearest: same category and nearest score first, then the smallest elsewhere."""
    others = [cell for cell in cells if cell is not small]

    def distance(cell: Cell) -> tuple[bool, int, int, tuple[str, ...], int]:
        gap = max(cell.first - small.last, small.first - cell.last, 0)
        return cell.categories != small.categories, gap, len(cell.keys), cell.categories, cell.first

    nearest = min(others, key=distance)
    return sorted(
        [cell for cell in others if cell is not nearest] + [nearest.merged(small)],
        key=lambda cell: (cell.categories, cell.first, cell.keys),
    )


def _name(cell: Cell, reach: Sequence[tuple[float, float]], cells: int) -> str:
    """A name that tells categories and scores, such as ``general|simple 2..3``, or ``all``; unique in a frame."""
    if cells == 1:
        return "all"
    low = "unscored" if cell.first == UNSCORED else f"{reach[cell.first][0]:.4g}"
    high = "unscored" if cell.last == UNSCORED else f"{reach[cell.last][1]:.4g}"
    scores = low if low == high else f"{low}..{high}"
    return f"{'|'.join(cell.categories)} {scores}".strip()
