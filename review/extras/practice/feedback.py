"""What a person's practice ratings have in common with those of the authors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from review.extras.practice.items import METRICS, Expected, PracticeItem

Levels = Mapping[str, int | None]  # metric -> level; ``None`` where the person could not judge


@dataclass(frozen=True, slots=True)
class Told:
    """One criterion: the person's level (``None``: could not judge) beside the expected one."""

    metric: str
    own: int | None
    expected: Expected

    @property
    def distance(self) -> int | None:
        """Levels between the two; ``None`` where the person could not judge."""
        return None if self.own is None else abs(self.own - self.expected.level)

    @property
    def same(self) -> bool:
        """Whether both gave the same level."""
        return self.distance == 0


@dataclass(frozen=True, slots=True)
class Tally:
    """A person's practice on one criterion: ratings given, the same, at most one level apart, and ``higher`` and
    ``lower`` than expected."""

    metric: str
    given: int
    same: int
    near: int
    higher: int
    lower: int


def told(item: PracticeItem, given: Levels) -> tuple[Told, ...]:
    """The criteria of an item, those that differ first and the furthest of them at the top."""
    found = [Told(name, given.get(name), item.ratings[name]) for name in METRICS]  # type: ignore[index]
    return tuple(sorted(found, key=lambda one: -5 if one.distance is None else -one.distance))


def tally(items: tuple[PracticeItem, ...], given: Mapping[str, Levels]) -> tuple[Tally, ...]:
    """The criteria over all items that were rated; what could not be judged is not counted."""
    everything = [one for item in items if item.id in given for one in told(item, given[item.id])]
    return tuple(_tally(name, [one for one in everything if one.metric == name]) for name in METRICS)


def _tally(metric: str, found: list[Told]) -> Tally:
    apart = [one.own - one.expected.level for one in found if one.own is not None]
    return Tally(
        metric,
        given=len(apart),
        same=sum(gap == 0 for gap in apart),
        near=sum(abs(gap) <= 1 for gap in apart),
        higher=sum(gap > 0 for gap in apart),
        lower=sum(gap < 0 for gap in apart),
    )
