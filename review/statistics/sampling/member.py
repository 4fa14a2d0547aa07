"""What a draw reads and says of every answer; strata by score and category, and several draws over one frame as one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

_NO_NUMBERS: Mapping[int, float] = MappingProxyType({})
_NO_PILOT: Mapping[str, float] = MappingProxyType({})


class Strategy(StrEnum):
    """How answers are chosen for review, as ``docs/queues.md`` tells."""

    ALL = "all"
    UNIFORM = "uniform"
    STRATIFIED = "stratified"
    FAILS_PLUS_SHARE = "fails_plus_share"
    UNCERTAINTY = "uncertainty"
    HAND_PICKED = "hand_picked"


@dataclass(frozen=True, slots=True)
class Member:
    """One answer of the frame. ``judge_score`` is ``None`` without a score; ``failed`` where the judge should have
    given one and could not. ``group`` names answers that are not independent."""

    key: int
    category: str = ""
    judge_score: float | None = None
    failed: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One frame member after the draw, sampled or not. ``probability`` (0 to 1) is that of being sampled by this
    draw, known before it happened; ``None`` where a person picked."""

    key: int
    stratum: str
    probability: float | None
    sampled: bool


class Place(NamedTuple):
    """Where an answer stands in a draw, or in several together. ``probability``: of being taken by any of the draws,
    ``None`` where none is known (hand-picked, imported as unknown); ``sampled``: taken by one with probabilities, or
    by hand where no draw has any.
    """

    probability: float | None = None
    stratum: str = ""
    sampled: bool = False


NOWHERE = Place()
Placed = Mapping[int, Place]  # by answer; equal places are best one object: a frame has few different ones


@dataclass(frozen=True, slots=True)
class DrawParams:
    """What a strategy may be told beside its size.

    ``certain``: answers taken by earlier draws whose ratings were seen; they are sampled with probability 1 and the
    rest is drawn on its own. ``keys``: hand-picked answers. ``fail_below``: judge scores under it are fails;
    ``share`` (0 to 1): how much of the others is taken, instead of the size. ``spread``: the judge's disagreement
    with itself per answer, any unit, not negative. ``pilot_sd``: standard deviation of the experts' values (or of
    expert minus judge) per stratum from earlier ratings, for Neyman's allocation. ``merge_below``: strata with a
    smaller share of the frame are merged. ``per_stratum``: least sample of a stratum.
    """

    certain: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()
    fail_below: float | None = None
    share: float | None = None
    spread: Mapping[int, float] = field(default_factory=lambda: _NO_NUMBERS)
    pilot_sd: Mapping[str, float] = field(default_factory=lambda: _NO_PILOT)
    merge_below: float = 0.08
    per_stratum: int = 2


def union_probability(probabilities: Sequence[float | None]) -> float | None:
    """The probability of being sampled by at least one draw: ``1 - prod(1 - p)``. Hand-picking (``None``) gives no
    probability and takes none away; ``None`` where nothing else was drawn."""
    known = [probability for probability in probabilities if probability is not None]
    if any(not 0.0 <= probability <= 1.0 for probability in known):
        raise ValueError("a probability lies between 0 and 1")
    return 1.0 - math.prod(1.0 - probability for probability in known) if known else None


def united(draws: Sequence[Placed]) -> dict[int, Place]:
    """All draws as one: union probabilities, sampled where a draw with probabilities sampled it. An answer that was
    only hand-picked does not count as sampled, unless no draw has probabilities at all.

    The strata are those of the draw that has most of them (the larger draw, where equally many): it filled each of
    them by itself, which the crossings of several draws' strata would not be; the probabilities carry the rest.

    :raises ValueError: when the draws have different frames, or there is none.
    """
    if len({frozenset(draw) for draw in draws}) != 1:
        raise ValueError("draws over different frames cannot be united")
    random = [draw for draw in draws if any(one.probability is not None for one in draw.values())] or list(draws)
    leading = max(random, key=_strata_and_size)

    @cache
    def place(stratum: str, ones: tuple[Place, ...]) -> Place:
        return Place(union_probability([one.probability for one in ones]), stratum, any(one.sampled for one in ones))

    return {key: place(leading[key].stratum, tuple([draw[key] for draw in random])) for key in sorted(leading)}


def _strata_and_size(draw: Placed) -> tuple[int, int]:
    return len({one.stratum for one in draw.values()}), sum(one.sampled for one in draw.values())


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
