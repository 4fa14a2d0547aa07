"""The next review that is worth while, and what a wanted interval or difference takes; as values and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, ngettext

from evaluation.messages import numbers
from evaluation.models import Run
from review.queues.design import FLOOR, Design, Errors, Expected, errors_of, strata_ahead
from review.queues.preview import reading_seconds, usual_seconds
from review.reports.figure import stratum_in_words
from review.reports.gathering import Gathered
from review.statistics.correction.frame import LEAST_LABELS
from review.statistics.correction.outcome import Target
from review.statistics.precision import (
    Plan,
    PlannedStratum,
    expected_half_width,
    labels_for_difference,
    labels_for_width,
)

WANTED = (0.05, 0.03, 0.02, 0.01)  # half-widths of the overall score, the widest first
NARROWER = 0.8  # a plan is worth a sentence when it takes a fifth off the interval


@dataclass(frozen=True, slots=True)
class ReviewPlan:
    """``items`` more answers to review, their minutes, and the half-width of the corrected overall score that is to be
    expected then; 0 where all are rated. ``now`` is the present half-width, ``None`` without a corrected score.
    ``guessed``: how far judge and experts are apart is a guess; ``measured``: the pace is the project's own;
    ``waiting``: the answers are drawn already and wait in a queue."""

    items: int
    minutes: float
    half_width: float
    now: float | None
    guessed: bool
    measured: bool
    waiting: bool = False

    @property
    def whole(self) -> bool:
        """Whether every answer would be rated."""
        return self.half_width <= 0

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "items": self.items,
            "minutes": round(self.minutes, 1),
            "half_width": self.half_width,
            "now": self.now,
            "guessed": self.guessed,
            "pace_measured": self.measured,
            "waiting": self.waiting,
        }


def next_review(basis: Gathered) -> ReviewPlan | None:
    """The next review that is worth while. ``None`` where the run has no overall score or nobody could narrow it: no
    judged part, everything rated, or an interval that is narrow already. One query."""
    errors = errors_of(basis)
    if errors is None or basis.run.state not in Run.ENDED:
        return None
    figure = basis.correction.overall(basis.profile, basis.machine, Target.THIS_RUN)
    now = None if figure.low is None or figure.high is None else (figure.high - figure.low) / 2.0
    unrated = errors_of(basis, figure.partly_corrected) if figure.partly_corrected else None
    reach = unrated.floor / FLOOR / 2.0 if unrated else 0.0  # of what nobody rated, either way
    waiting = len(errors.waiting - errors.by_answer.keys())
    if waiting:
        plan = _finishing(basis, errors, waiting, reach)
    elif unrated and now is not None:
        errors, plan = unrated, _unrated(basis, unrated, now, reach)
    else:
        plan = _worthwhile(basis, errors, now)
    if plan is None:
        return None
    items, half_width = plan
    pace = usual_seconds(basis.run.project_id)
    seconds = items * (pace or reading_seconds(len(errors.parts)))
    return ReviewPlan(items, seconds / 60.0, half_width, now, errors.guessed, pace is not None, bool(waiting))


def _finishing(basis: Gathered, errors: Errors, waiting: int, reach: float) -> tuple[int, float] | None:
    """What is drawn comes first: its ratings and those there are count together. ``reach``: what parts that nobody
    rated add to the interval either way."""
    frame = _frame(basis)
    labels = len(errors.by_answer) + waiting
    stratum = PlannedStratum("", frame, errors.deviation)
    return waiting, reach + expected_half_width([stratum], {"": min(labels, frame)})


def _unrated(basis: Gathered, errors: Errors, now: float, reach: float) -> tuple[int, float] | None:
    """The parts nobody rated come before those that could be narrowed: so far they may be anything on their scale. What
    they give then joins the interval of the rated parts."""
    frame, stratum = _frame(basis), PlannedStratum("", _frame(basis), errors.deviation)
    for wanted in WANTED:
        labels = min(frame, max(LEAST_LABELS, labels_for_width([stratum], wanted).labels))
        half_width = math.hypot(max(0.0, now - reach), expected_half_width([stratum], {"": labels}))
        if half_width <= NARROWER * now:
            return labels, half_width
    return None


def _worthwhile(basis: Gathered, errors: Errors, now: float | None) -> tuple[int, float] | None:
    """The first wanted half-width that is clearly below the present one, as further answers and what they give. What a
    queue took earlier is certain in the next draw, and the rest is estimated on its own; ratings made elsewhere count
    together with new ones."""
    frame, rated = _frame(basis), len(errors.by_answer)
    certain = _certain(basis)
    earlier = 0 if certain else rated
    if rated >= frame or certain >= frame:
        return None
    strata = [PlannedStratum("", frame - certain, errors.deviation)]
    for wanted in WANTED:
        if now is not None and wanted > NARROWER * now:
            continue
        plan = labels_for_width(strata, wanted, certain=certain)
        if plan.labels > earlier and (now is None or plan.half_width <= NARROWER * now):
            return plan.labels - earlier, plan.half_width
    return None


def _frame(basis: Gathered) -> int:
    return sum(not answer.failed for answer in basis.said.answers.values())


def _certain(basis: Gathered) -> int:
    """How many answers earlier draws took, where their ratings may have been seen; as a new draw takes it."""
    if all(rating.imported for rating in basis.said.ratings):
        return 0
    return len(basis.samples.drawn & {key for key, answer in basis.said.answers.items() if not answer.failed})


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


def goals(
    found: Design, staff: Staff, width: float | None = None, difference: float | None = None, share: float = 1.0
) -> tuple[Goal, ...]:
    """What the usual widths take, and a width or difference that somebody asks for; each number of answers once, the
    fewest first. Empty for metrics that are no part of the overall score, or where nothing is left to draw. ``share``:
    of the answers drawn that are asked a criterion; what more answers would take than there are is left out.

    :raises ValueError: for a width or difference that is not positive.
    """
    strata, certain = strata_ahead(found)
    if not strata:
        return ()
    asked = _asked(strata, certain, width, difference)
    usual = [labels_for_width(strata, one, certain=certain) for one in WANTED]
    by_items = {math.ceil(plan.labels / share): (plan, False) for plan in usual}
    by_items |= {math.ceil(plan.labels / share): (plan, True) for plan in asked}
    return tuple(
        Goal(items, staff.minutes_each(items), plan.half_width, plan.difference, mark)
        for items, (plan, mark) in sorted(by_items.items())
        if items <= len(found.members)
    )


def size_for(found: Design, width: float | None, difference: float | None, share: float = 1.0) -> int | None:
    """The answers to draw for the stricter of what is asked; ``None`` where nothing is, or nothing can be planned."""
    strata, certain = strata_ahead(found)
    sizes = [plan.labels for plan in _asked(strata, certain, width, difference)] if strata else []
    return math.ceil(max(sizes) / share) if sizes else None


def _asked(strata: list[PlannedStratum], certain: int, width: float | None, difference: float | None) -> list[Plan]:
    found = [labels_for_width(strata, width, certain=certain)] if width is not None else []
    return found + ([labels_for_difference(strata, difference, certain=certain)] if difference is not None else [])


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
    """``Review 60 answers, about 50 minutes, for an interval of about 0.05 either way for this run.``; empty without
    a plan."""
    if plan is None:
        return ""
    facts = {"count": plan.items, "time": numbers.about(plan.minutes * 60.0), "width": _up(plan.half_width)}
    if plan.whole:
        said = ngettext(
            "Review the %(count)d answer that is left, about %(time)s, and the score is exact for this run.",
            "Review the %(count)d answers that are left, about %(time)s, and the score is exact for this run.",
            plan.items,
        )
    elif plan.waiting:
        said = ngettext(
            "Review the %(count)d answer that is drawn already, about %(time)s, for an interval of about %(width)s "
            "either way for this run.",
            "Review the %(count)d answers that are drawn already, about %(time)s, for an interval of about %(width)s "
            "either way for this run.",
            plan.items,
        )
    elif plan.now is not None:
        facts["now"] = _up(plan.now)
        said = ngettext(
            "Review %(count)d more answer, about %(time)s, to narrow the interval from %(now)s to about %(width)s "
            "either way for this run.",
            "Review %(count)d more answers, about %(time)s, to narrow the interval from %(now)s to about %(width)s "
            "either way for this run.",
            plan.items,
        )
    else:
        said = ngettext(
            "Review %(count)d answer, about %(time)s, for an interval of about %(width)s either way for this run.",
            "Review %(count)d answers, about %(time)s, for an interval of about %(width)s either way for this run.",
            plan.items,
        )
    return said % facts


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
    return gettext("A first guess, as nobody has rated yet: it assumes the judge to be off by a quarter of the scale.")


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
