"""Input and output of a draw, strata by score and category, and the union of several draws over one frame."""

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
    """Sampling strategy of a review queue, see ``docs/queues.md``."""

    ALL = "all"
    UNIFORM = "uniform"
    STRATIFIED = "stratified"
    FAILS_PLUS_SHARE = "fails_plus_share"
    UNCERTAINTY = "uncertainty"
    HAND_PICKED = "hand_picked"
    SECOND_OPINION = "second_opinion"
    RECHECK = "recheck"

    @property
    def has_probabilities(self) -> bool:
        """Return whether every answer has a known probability, so that the ratings can correct scores."""
        return self is not Strategy.HAND_PICKED and not self.draws_rated

    @property
    def draws_rated(self) -> bool:
        """Return whether the strategy draws among answers that have ratings."""
        return self in {Strategy.SECOND_OPINION, Strategy.RECHECK}


@dataclass(frozen=True, slots=True)
class Member:
    """Answer of the sampling frame.

    ``judge_score`` is ``None`` without a score; ``failed`` means that the judge should have given one and could not.
    ``group`` names answers that are not independent."""

    key: int
    category: str = ""
    judge_score: float | None = None
    failed: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class DrawnAnswer:
    """Frame member after the draw, sampled or not.

    ``probability`` (0 to 1) is that of being sampled by this draw, fixed before it; ``None`` if a person picked."""

    key: int
    stratum: str
    probability: float | None
    sampled: bool


class Inclusion(NamedTuple):
    """Inclusion of an answer in a draw, or in several together.

    ``probability`` is that of being taken by any of the draws, ``None`` if unknown (hand-picked, imported as unknown).
    ``sampled``: taken by a draw with probabilities, or by hand if no draw has any."""

    probability: float | None = None
    stratum: str = ""
    sampled: bool = False


NO_INCLUSION = Inclusion()
# Inclusions by answer. Equal inclusions should share one object, because a frame has few different ones.
Inclusions = Mapping[int, Inclusion]


@dataclass(frozen=True, slots=True)
class DrawParams:
    """Parameters of a strategy besides its size.

    ``certain``: answers taken by earlier draws whose ratings were seen. They are sampled with probability 1, and the
    others are drawn separately. ``keys``: answers that ``hand_picked`` takes, or ``second_opinion`` and ``recheck``
    draw from. ``fail_below``: judge scores under it are fails. ``share`` (0 to 1): share of the other answers that is
    taken, instead of the size. ``spread``: the judge's disagreement with itself per answer, in any unit, not negative.
    ``pilot_sd``: standard deviation of the experts' values (or of expert minus judge) per stratum from earlier ratings,
    for Neyman allocation. ``merge_below``: strata with a smaller share of the frame are merged. ``per_stratum``:
    minimum sample of a stratum."""

    certain: frozenset[int] = frozenset()
    keys: frozenset[int] = frozenset()
    fail_below: float | None = None
    share: float | None = None
    spread: Mapping[int, float] = field(default_factory=lambda: _NO_NUMBERS)
    pilot_sd: Mapping[str, float] = field(default_factory=lambda: _NO_PILOT)
    merge_below: float = 0.08
    per_stratum: int = 2


def union_probability(probabilities: Sequence[float | None]) -> float | None:
    """Probability of being sampled by at least one draw: ``1 - prod(1 - p)``.

    Hand-picking (``None``) changes no probability. ``None`` if no draw has one."""
    known = [probability for probability in probabilities if probability is not None]
    if any(not 0.0 <= probability <= 1.0 for probability in known):
        raise ValueError("a probability lies between 0 and 1")
    return 1.0 - math.prod(1.0 - probability for probability in known) if known else None


def unite_draws(draws: Sequence[Inclusions]) -> dict[int, Inclusion]:
    """Unite draws over one frame: union probabilities, and sampled if a draw with probabilities sampled it.

    An answer that was only hand-picked does not count as sampled, unless no draw has probabilities.

    The strata are those of the draw with most strata (of equal ones, the larger draw). That draw filled each of its
    strata, which crossed strata would not guarantee. The probabilities account for the other draws.

    :raises ValueError: if the draws have different frames, or there is none."""
    if len({frozenset(draw) for draw in draws}) != 1:
        raise ValueError("draws over different frames cannot be united")
    probability_draws = [
        draw for draw in draws if any(inclusion.probability is not None for inclusion in draw.values())
    ] or list(draws)
    leading_draw = max(probability_draws, key=_strata_and_size)

    @cache
    def united_inclusion(stratum: str, inclusions: tuple[Inclusion, ...]) -> Inclusion:
        return Inclusion(
            union_probability([inclusion.probability for inclusion in inclusions]),
            stratum,
            any(inclusion.sampled for inclusion in inclusions),
        )

    return {
        key: united_inclusion(leading_draw[key].stratum, tuple([draw[key] for draw in probability_draws]))
        for key in sorted(leading_draw)
    }


def _strata_and_size(draw: Inclusions) -> tuple[int, int]:
    return len({inclusion.stratum for inclusion in draw.values()}), sum(
        inclusion.sampled for inclusion in draw.values()
    )


FAILED = "failed"
# More different scores are cut into quarters of the frame.
MAX_SCORE_BANDS = 10
UNSCORED = -1


@dataclass(frozen=True, slots=True)
class StratumCell:
    """Answers of one category within one band of judge scores; merging makes larger cells."""

    categories: tuple[str, ...]
    first: int
    last: int
    keys: tuple[int, ...]

    def merged(self, other: StratumCell) -> StratumCell:
        return StratumCell(
            tuple(sorted({*self.categories, *other.categories})),
            min(self.first, other.first),
            max(self.last, other.last),
            (*self.keys, *other.keys),
        )


def stratify(members: Sequence[Member], merge_below: float, max_strata: int | None = None) -> dict[int, str]:
    """Stratum of every member, by key: judge score x category.

    Answers that the judge failed on are one stratum, which is never merged. Other cells below ``merge_below`` (a share
    of the frame) are merged with the neighbouring score of their category, then with another category. The smallest
    cells are merged while there are more than ``max_strata`` strata."""
    failed = [member.key for member in members if member.failed]
    bands, band_ends = _bands(members)
    cells = _cells(members, bands)
    min_size = merge_below * len(members)
    max_cells = None if max_strata is None else max(1, max_strata - bool(failed))
    while len(cells) > 1:
        smallest = min(cells, key=lambda cell: (len(cell.keys), cell.categories, cell.first))
        if len(smallest.keys) >= min_size and (max_cells is None or len(cells) <= max_cells):
            break
        cells = _absorb(cells, smallest)
    strata = dict.fromkeys(failed, FAILED)
    for cell in cells:
        strata |= dict.fromkeys(cell.keys, _stratum_name(cell, band_ends, len(cells)))
    return strata


def _bands(members: Sequence[Member]) -> tuple[dict[int, int], list[tuple[float, float]]]:
    """Score band of each member that did not fail, and the ends of the bands, low to high."""
    scores = sorted({member.judge_score for member in members if member.judge_score is not None and not member.failed})
    if len(scores) <= MAX_SCORE_BANDS:
        edges = scores
        upper_edges = scores
    else:
        all_scores = [member.judge_score for member in members if member.judge_score is not None and not member.failed]
        edges = sorted({float(edge) for edge in np.quantile(all_scores, [0.0, 0.25, 0.5, 0.75], method="lower")})
        upper_edges = [*edges[1:], scores[-1]]
    band_of_answer = {
        member.key: UNSCORED
        if member.judge_score is None
        else int(np.searchsorted(edges, member.judge_score, side="right")) - 1
        for member in members
        if not member.failed
    }
    return band_of_answer, list(zip(edges, upper_edges, strict=True))


def _cells(members: Sequence[Member], bands: dict[int, int]) -> list[StratumCell]:
    content: dict[tuple[str, int], list[int]] = {}
    for member in members:
        if member.key in bands:
            content.setdefault((member.category, bands[member.key]), []).append(member.key)
    return [StratumCell((category,), band, band, tuple(keys)) for (category, band), keys in sorted(content.items())]


def _absorb(cells: list[StratumCell], small: StratumCell) -> list[StratumCell]:
    """Merge a small cell with the nearest one: same category and nearest score first, then the smallest of another
    category."""
    others = [cell for cell in cells if cell is not small]

    def distance(cell: StratumCell) -> tuple[bool, int, int, tuple[str, ...], int]:
        gap = max(cell.first - small.last, small.first - cell.last, 0)
        return cell.categories != small.categories, gap, len(cell.keys), cell.categories, cell.first

    nearest = min(others, key=distance)
    return sorted(
        [cell for cell in others if cell is not nearest] + [nearest.merged(small)],
        key=lambda cell: (cell.categories, cell.first, cell.keys),
    )


def _stratum_name(cell: StratumCell, band_ends: Sequence[tuple[float, float]], cells: int) -> str:
    """Unique name with categories and scores, such as ``general|simple 2..3``, or ``all``."""
    if cells == 1:
        return "all"
    low = "unscored" if cell.first == UNSCORED else f"{band_ends[cell.first][0]:.4g}"
    high = "unscored" if cell.last == UNSCORED else f"{band_ends[cell.last][1]:.4g}"
    scores = low if low == high else f"{low}..{high}"
    return f"{'|'.join(cell.categories)} {scores}".strip()
