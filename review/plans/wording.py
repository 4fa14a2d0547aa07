"""What reviewing more would bring, in a sentence; and what a draw is expected to give, by strata."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, ngettext

from evaluation.wording import numbers
from review.plans.ahead import ReviewPlan, next_review
from review.plans.design import Expected
from review.plans.goals import Goal
from review.reports.figure import stratum_in_words
from review.reports.gathering import Gathered

FINE = 0.02  # half-widths below it are told to three decimals


@dataclass(frozen=True, slots=True)
class GoalRow:
    """What a number of answers takes and gives. ``whole``: every answer would be rated."""

    half_width: str
    items: int
    takes: str
    difference: str
    asked: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class StratumRow:
    """A stratum of the draw that is previewed."""

    name: str
    size: int
    drawn: int
    deviation: str


@dataclass(frozen=True, slots=True)
class ExpectedCard:
    """The interval that a draw is expected to give; ``half_width`` is empty where every answer would be rated.
    ``neyman``: the strata were filled by what earlier ratings say of them; ``guessed``: how far judge and experts are
    apart is a guess."""

    half_width: str
    guessed: bool
    neyman: bool
    strata: tuple[StratumRow, ...]


def plan_sentence(plan: ReviewPlan | None) -> str:
    """``Review 60 answers, about 50 minutes, for an interval of about 0.05 either way.``; empty without a plan."""
    if plan is None:
        return ""
    facts = {"count": plan.items, "time": numbers.about(plan.minutes * 60.0), "width": _up(plan.half_width)}
    if plan.whole:
        return (
            ngettext(
                "Review the %(count)d answer that is left, about %(time)s, and the score is exact for this run.",
                "Review the %(count)d answers that are left, about %(time)s, and the score is exact for this run.",
                plan.items,
            )
            % facts
        )
    if plan.waiting:
        return (
            ngettext(
                "Review the %(count)d answer that is drawn already, about %(time)s, for an interval of about %(width)s "
                "either way.",
                "Review the %(count)d answers that are drawn already, about %(time)s, for an interval of about "
                "%(width)s either way.",
                plan.items,
            )
            % facts
        )
    if plan.now is not None:
        facts["now"] = _up(plan.now)
        return (
            ngettext(
                "Review %(count)d more answer, about %(time)s, to narrow the interval from %(now)s to about %(width)s "
                "either way.",
                "Review %(count)d more answers, about %(time)s, to narrow the interval from %(now)s to about %(width)s "
                "either way.",
                plan.items,
            )
            % facts
        )
    return (
        ngettext(
            "Review %(count)d answer, about %(time)s, for an interval of about %(width)s either way.",
            "Review %(count)d answers, about %(time)s, for an interval of about %(width)s either way.",
            plan.items,
        )
        % facts
    )


def plan_json(plan: ReviewPlan | None) -> dict[str, Any] | None:
    """The next review for programs, with the sentence for people; ``None`` without one."""
    return None if plan is None else {**plan.to_dict(), "sentence": plan_sentence(plan), "note": guess_note(plan)}


def planned_review(basis: Gathered) -> dict[str, Any] | None:
    """The next review that is worth while after a run, for programs. One query."""
    return plan_json(next_review(basis))


def guess_note(plan: ReviewPlan | None) -> str:
    """What the sentence rests on where that is a guess."""
    if plan is None or not plan.guessed:
        return ""
    return gettext("A first guess: it takes the judge to be a quarter of the scale off.")


def expected_card(expected: Expected | None, *, neyman: bool) -> ExpectedCard | None:
    """The card of an expected interval; ``None`` without one."""
    if expected is None:
        return None
    rows = tuple(
        StratumRow(stratum_in_words(one.name), one.size, one.drawn, numbers.plain(one.deviation, 3))
        for one in expected.strata
    )
    half_width = _up(expected.half_width) if expected.half_width > 0 else ""
    return ExpectedCard(half_width, expected.guessed, neyman, rows if len(rows) > 1 else ())


def goal_rows(found: Sequence[Goal]) -> tuple[GoalRow, ...]:
    """The rows of what it takes."""
    return tuple(
        GoalRow(
            _up(one.half_width),
            one.items,
            numbers.about(max(one.minutes_each * 60.0, 60.0)),
            _up(one.difference),
            one.asked,
            one.whole,
        )
        for one in found
    )


def _up(half_width: float) -> str:
    """Rounded up, so that nobody is promised more than is expected; below 0.02 to three decimals."""
    decimals = 2 if half_width >= FINE else 3
    return numbers.plain(math.ceil(round(half_width * 10**decimals, 6)) / 10**decimals, decimals)
