"""What a draw sees of an answer, what it is told, and what it says about every answer it could have taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

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
