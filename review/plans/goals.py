"""How many answers give a wanted interval, or show a wanted difference between two runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from review.plans.ahead import WANTED
from review.plans.design import Design, strata_ahead
from review.statistics.precision.width import Plan, PlannedStratum, labels_for_difference, labels_for_width


@dataclass(frozen=True, slots=True)
class Staff:
    """Who reviews: so many people, so many ratings of each answer on average, at so many seconds a rating."""

    reviewers: int
    ratings_each: float
    seconds: float

    def minutes_each(self, items: int) -> float:
        """How long each of them is busy with so many answers."""
        return math.ceil(items * self.ratings_each / max(1, self.reviewers) - 1e-9) * self.seconds / 60.0


@dataclass(frozen=True, slots=True)
class Goal:
    """What ``items`` new answers, spread over strata by Neyman's allocation, are expected to give: the half-width of
    the corrected overall score, and the difference between two runs reviewed like this that is found four times in
    five. ``minutes_each`` is the time of each reviewer. ``asked``: somebody asked for it."""

    items: int
    minutes_each: float
    half_width: float
    difference: float
    asked: bool

    @property
    def whole(self) -> bool:
        """Whether every answer would be rated."""
        return self.half_width <= 0


def goals(found: Design, staff: Staff, width: float | None = None, difference: float | None = None) -> tuple[Goal, ...]:
    """What the usual widths take, and a width or difference that somebody asks for; each number of answers once, the
    fewest first. Empty for metrics that are no part of the overall score, or where nothing is left to draw.

    :raises ValueError: for a width or difference that is not positive.
    """
    strata, certain = strata_ahead(found)
    if not strata:
        return ()
    asked = _asked(strata, certain, width, difference)
    usual = [labels_for_width(strata, one, certain=certain) for one in WANTED]
    by_items = {plan.labels: (plan, False) for plan in usual} | {plan.labels: (plan, True) for plan in asked}
    return tuple(_goal(plan, staff, asked=mark) for _, (plan, mark) in sorted(by_items.items()))


def size_for(found: Design, width: float | None, difference: float | None) -> int | None:
    """The answers to draw for the stricter of what is asked; ``None`` where nothing is, or nothing can be planned."""
    strata, certain = strata_ahead(found)
    sizes = [plan.labels for plan in _asked(strata, certain, width, difference)] if strata else []
    return max(sizes, default=None)


def _asked(strata: list[PlannedStratum], certain: int, width: float | None, difference: float | None) -> list[Plan]:
    found = [labels_for_width(strata, width, certain=certain)] if width is not None else []
    return found + ([labels_for_difference(strata, difference, certain=certain)] if difference is not None else [])


def _goal(plan: Plan, staff: Staff, *, asked: bool) -> Goal:
    return Goal(plan.labels, staff.minutes_each(plan.labels), plan.half_width, plan.difference, asked)
