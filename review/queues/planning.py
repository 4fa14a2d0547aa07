"""Plan of the next worthwhile review, and the sample size for a target interval or difference, as values and in
words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, ngettext

from evaluation.messages import numbers
from evaluation.models import Run
from review.models.queue_spec import CRITERIA_PER_ANSWER, QueueSpec
from review.queues.design import (
    ExpectedInterval,
    JudgeErrors,
    SampleDesign,
    combined_half_width,
    judge_errors,
    remaining_strata,
    unrated_range,
)
from review.queues.outcome import score_after_waiting, score_if_all_rated
from review.queues.pace import answer_pace
from review.queues.rounds import open_round
from review.reports.figure import stratum_in_words
from review.reports.inputs import ReportInputs
from review.statistics.correction.corrected import MIN_FRAME_SIZE
from review.statistics.correction.frame import MIN_LABELS
from review.statistics.correction.outcome import Target
from review.statistics.precision import (
    LabelPlan,
    PlannedStratum,
    expected_half_width,
    labels_for_difference,
    labels_for_width,
)

# Target half-widths of the overall score, widest first.
TARGET_HALF_WIDTHS = (0.05, 0.03, 0.02, 0.01)
# A plan is worth a sentence if it narrows the interval by a fifth.
WORTHWHILE_RATIO = 0.8


@dataclass(frozen=True, slots=True)
class ReviewPlan:
    """Plan of a review: ``items`` more answers, their minutes, and the expected half-width of the corrected overall
    score: 0 if all are rated, ``None`` if the ratings give no corrected score.

    ``current_half_width`` is ``None`` without a corrected score. ``guessed``: the judge's error is a guess.
    ``pace_measured``: the pace is the project's own. ``waiting``: the answers are drawn already. ``queue_id``: the
    answers are the next planned round of this queue."""

    items: int
    minutes: float
    half_width: float | None
    current_half_width: float | None
    guessed: bool
    pace_measured: bool
    waiting: bool = False
    queue_id: int | None = None

    @property
    def covers_all(self) -> bool:
        """True if every answer would be rated."""
        return self.half_width is not None and self.half_width <= 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "items": self.items,
            "minutes": round(self.minutes, 1),
            "half_width": self.half_width,
            "now": self.current_half_width,
            "guessed": self.guessed,
            "pace_measured": self.pace_measured,
            "waiting": self.waiting,
            "next_round_of": self.queue_id,
        }


def next_review(basis: ReportInputs) -> ReviewPlan | None:
    """Plan the next worthwhile review, the next planned round if there is one. Three queries.

    ``None`` if the run has no overall score, or a review would not narrow it: no judged part, everything rated, or an
    interval that is narrow already."""
    errors = judge_errors(basis)
    if errors is None or basis.run.state not in Run.ENDED:
        return None
    figure = basis.correction.overall(basis.profile, basis.machine, Target.THIS_RUN)
    current_half_width = None if figure.low is None or figure.high is None else (figure.high - figure.low) / 2.0
    unrated_errors = judge_errors(basis, figure.partly_corrected) if figure.partly_corrected else None
    widening = unrated_range(basis, figure)
    waiting_count = len(errors.waiting_answers - errors.by_answer.keys())
    plan: tuple[int, float | None] | None
    queue_id = None
    if waiting_count:
        plan = _waiting_plan(basis, errors, waiting_count, widening)
    elif unrated_errors and current_half_width is not None:
        errors, plan = unrated_errors, _unrated_plan(basis, unrated_errors, current_half_width, widening)
    elif (next_round := open_round(basis.run)) and (
        plan := _round_plan(basis, errors, next_round.size, current_half_width, widening)
    ):
        queue_id = next_round.queue_id
    else:
        plan = _worthwhile_plan(basis, errors, current_half_width)
    if plan is None:
        return None
    items, half_width = plan
    if current_half_width is None and half_width is not None and score_if_all_rated(basis).withheld:
        half_width = None
    criteria = min(len(errors.parts), CRITERIA_PER_ANSWER)
    pace = answer_pace(basis.run.project_id, criteria, list(basis.evidence.answers))
    minutes = items * pace.seconds / 60.0
    return ReviewPlan(
        items, minutes, half_width, current_half_width, errors.guessed, pace.measured, bool(waiting_count), queue_id
    )


def _waiting_plan(
    basis: ReportInputs, errors: JudgeErrors, waiting_count: int, widening: float
) -> tuple[int, float | None]:
    """Plan to rate the answers that are drawn already. ``widening``: what unrated parts add to the interval on either
    side."""
    if score_after_waiting(basis).withheld:
        return waiting_count, None
    frame_size = _frame_size(basis)
    label_count = len(errors.by_answer) + waiting_count
    stratum = PlannedStratum("", frame_size, errors.deviation)
    return waiting_count, widening + expected_half_width([stratum], {"": min(label_count, frame_size)})


def _round_plan(
    basis: ReportInputs, errors: JudgeErrors, size: int, current_half_width: float | None, widening: float
) -> tuple[int, float] | None:
    """Plan of the next planned round, if it narrows the interval clearly. Its answers count as those of one draw."""
    frame_size = _frame_size(basis)
    size = min(size, frame_size - _certain_count(basis))
    stratum, labels = PlannedStratum("", frame_size, errors.deviation), len(errors.by_answer) + size
    half_width = widening + expected_half_width([stratum], {"": min(labels, frame_size)})
    is_worthwhile = current_half_width is None or half_width <= WORTHWHILE_RATIO * current_half_width
    return (size, half_width) if size > 0 and is_worthwhile else None


def _unrated_plan(
    basis: ReportInputs, errors: JudgeErrors, current_half_width: float, widening: float
) -> tuple[int, float] | None:
    """Plan to rate parts without ratings. They come first, because their values may lie anywhere on the scale; their
    interval is then added to that of the rated parts."""
    frame_size, stratum = _frame_size(basis), PlannedStratum("", _frame_size(basis), errors.deviation)
    for target in TARGET_HALF_WIDTHS:
        labels = min(frame_size, max(MIN_LABELS, labels_for_width([stratum], target).labels))
        half_width = math.hypot(max(0.0, current_half_width - widening), expected_half_width([stratum], {"": labels}))
        if half_width <= WORTHWHILE_RATIO * current_half_width:
            return _answers_to_draw(basis, labels, frame_size), half_width
    return None


def _worthwhile_plan(
    basis: ReportInputs, errors: JudgeErrors, current_half_width: float | None
) -> tuple[int, float] | None:
    """Plan for the widest target half-width clearly below the current one.

    Answers of earlier queues are certain in the next draw, whose estimate of the rest is combined with theirs. Imported
    ratings count together with new ones."""
    frame_size, rated_count = _frame_size(basis), len(errors.by_answer)
    certain_count = _certain_count(basis)
    earlier_count = 0 if certain_count else rated_count
    if rated_count >= frame_size or certain_count >= frame_size:
        return None
    strata = [PlannedStratum("", frame_size - certain_count, errors.deviation)]
    for target in TARGET_HALF_WIDTHS:
        if current_half_width is not None and target > WORTHWHILE_RATIO * current_half_width:
            continue
        plan = labels_for_width(strata, target, certain=certain_count)
        half_width = combined_half_width(plan.half_width, current_half_width if certain_count else None)
        if plan.labels > earlier_count and (
            current_half_width is None or half_width <= WORTHWHILE_RATIO * current_half_width
        ):
            items = _answers_to_draw(basis, plan.labels - earlier_count, frame_size - certain_count)
            return items, half_width
    return None


def _answers_to_draw(basis: ReportInputs, labels: int, available: int) -> int:
    """Number of answers that give each judged part so many labels, and at least those of a corrected score.

    In a queue with default settings, more than three criteria take turns; a part that does not apply to every answer
    gets fewer labels, by chance."""
    components = basis.correction.components(basis.profile, basis.machine)
    judged_components = [component for component in components if component.judged]
    share = QueueSpec().share_per_criterion(len(judged_components))
    frame_size, items = _frame_size(basis), labels / share
    for component in judged_components:
        size, missing = len(component.frame), MIN_LABELS - component.labels
        if MIN_FRAME_SIZE <= size < frame_size and missing > 0:
            items = max(items, (missing + math.sqrt(missing)) / share * frame_size / size)
    return min(available, math.ceil(items))


def _frame_size(basis: ReportInputs) -> int:
    return sum(not answer.failed for answer in basis.evidence.answers.values())


def _certain_count(basis: ReportInputs) -> int:
    """Number of answers that earlier draws took, provided that their ratings may have been seen."""
    if all(rating.imported for rating in basis.evidence.ratings):
        return 0
    return len(
        basis.samples.drawn_answers & {key for key, answer in basis.evidence.answers.items() if not answer.failed}
    )


@dataclass(frozen=True, slots=True)
class ReviewStaff:
    """Review capacity: number of reviewers, average ratings per answer, and seconds per rating."""

    reviewers: int
    ratings_per_answer: float
    seconds_per_rating: float

    def minutes_each(self, items: int) -> float:
        """Minutes of work for each reviewer."""
        return (
            math.ceil(items * self.ratings_per_answer / max(1, self.reviewers) - 1e-9) * self.seconds_per_rating / 60.0
        )


@dataclass(frozen=True, slots=True)
class PrecisionGoal:
    """Expected result of ``items`` new answers under Neyman allocation.

    ``half_width`` is that of the corrected overall score. ``difference`` is the difference between two runs, both
    reviewed like this, that is detected with a power of 80%, ``None`` with unrated parts. ``minutes_each`` is the time
    of each reviewer. ``requested``: a lead entered this goal."""

    items: int
    minutes_each: float
    half_width: float
    difference: float | None
    requested: bool

    @property
    def covers_all(self) -> bool:
        """True if every answer would be rated."""
        return self.half_width <= 0


def precision_goals(
    design: SampleDesign,
    staff: ReviewStaff,
    width: float | None = None,
    difference: float | None = None,
    share: float = 1.0,
    widening: float = 0.0,
) -> tuple[PrecisionGoal, ...]:
    """Goals for the default widths and for a requested width or difference; each number of answers once, fewest first.

    ``share`` is the share of drawn answers on which a criterion is rated. ``widening`` is what unrated parts add to the
    interval on either side: no difference can be told beside it. Goals beyond the available answers are left
    out. Empty for metrics outside the overall score, or if no answer is left to draw.

    :raises ValueError: for a width or difference that is not positive."""
    strata, certain_count = remaining_strata(design)
    if not strata:
        return ()
    earlier_half_width = design.earlier_half_width
    requested_plans = _requested_plans(strata, certain_count, width, difference)
    default_plans = [labels_for_width(strata, target, certain=certain_count) for target in TARGET_HALF_WIDTHS]
    by_items = {math.ceil(plan.labels / share): (plan, False) for plan in default_plans}
    by_items |= {math.ceil(plan.labels / share): (plan, True) for plan in requested_plans}
    return tuple(
        PrecisionGoal(
            items,
            staff.minutes_each(items),
            combined_half_width(plan.half_width, earlier_half_width) + widening,
            None if widening else plan.difference,
            is_requested,
        )
        for items, (plan, is_requested) in sorted(by_items.items())
        if items <= len(design.members)
    )


def size_for_goal(
    design: SampleDesign, width: float | None, difference: float | None, share: float = 1.0
) -> int | None:
    """Answers to draw for the stricter request; ``None`` without a request, or if nothing can be planned."""
    strata, certain_count = remaining_strata(design)
    sizes = [plan.labels for plan in _requested_plans(strata, certain_count, width, difference)] if strata else []
    return math.ceil(max(sizes) / share) if sizes else None


def _requested_plans(
    strata: list[PlannedStratum], certain_count: int, width: float | None, difference: float | None
) -> list[LabelPlan]:
    plans = [labels_for_width(strata, width, certain=certain_count)] if width is not None else []
    return plans + (
        [labels_for_difference(strata, difference, certain=certain_count)] if difference is not None else []
    )


# Half-widths below it are printed with three decimals.
FINE_BELOW = 0.02


@dataclass(frozen=True, slots=True)
class GoalRow:
    """A goal in words. ``covers_all``: every answer would be rated."""

    half_width: str
    items: int
    time_each: str
    difference: str
    requested: bool
    covers_all: bool


@dataclass(frozen=True, slots=True)
class StratumRow:
    """A stratum of the previewed draw, in words."""

    name: str
    size: int
    sample_size: int
    deviation: str


@dataclass(frozen=True, slots=True)
class ExpectedCard:
    """Expected interval of a draw; ``half_width`` is empty if every answer would be rated. ``uses_neyman``: earlier
    ratings determine the strata's sample sizes. ``guessed``: the judge's error is a guess."""

    half_width: str
    guessed: bool
    uses_neyman: bool
    strata: tuple[StratumRow, ...]


def plan_sentence(plan: ReviewPlan | None) -> str:
    """Sentence such as ``Review 60 answers (about 50 min) for a margin of ±0.05.``; empty without a plan."""
    if plan is None:
        return ""
    facts = {"count": plan.items, "time": numbers.format_duration(max(plan.minutes * 60.0, 60.0))}
    if plan.half_width is not None:
        facts["width"] = _rounded_up(plan.half_width)
    if plan.covers_all:
        sentence = ngettext(
            "Review the remaining %(count)d answer (about %(time)s). The score is then exact for this run.",
            "Review the remaining %(count)d answers (about %(time)s). The score is then exact for this run.",
            plan.items,
        )
    elif plan.half_width is None and not plan.waiting:
        sentence = ngettext(
            "Review %(count)d answer (about %(time)s).", "Review %(count)d answers (about %(time)s).", plan.items
        )
    elif plan.half_width is None:
        sentence = ngettext(
            "%(count)d sampled answer is still unrated (about %(time)s).",
            "%(count)d sampled answers are still unrated (about %(time)s).",
            plan.items,
        )
    elif plan.waiting:
        sentence = ngettext(
            "%(count)d sampled answer is still unrated (about %(time)s). Rating it gives a margin of ±%(width)s.",
            "%(count)d sampled answers are still unrated (about %(time)s). Rating them gives a margin of ±%(width)s.",
            plan.items,
        )
    elif plan.current_half_width is not None:
        facts["now"] = _rounded_up(plan.current_half_width)
        sentence = ngettext(
            "Review %(count)d more answer (about %(time)s) to narrow the margin from ±%(now)s to ±%(width)s.",
            "Review %(count)d more answers (about %(time)s) to narrow the margin from ±%(now)s to ±%(width)s.",
            plan.items,
        )
    else:
        sentence = ngettext(
            "Review %(count)d answer (about %(time)s) for a margin of ±%(width)s.",
            "Review %(count)d answers (about %(time)s) for a margin of ±%(width)s.",
            plan.items,
        )
    return sentence % facts


def plan_json(plan: ReviewPlan | None) -> dict[str, Any] | None:
    """Plan as JSON values with its sentence; ``None`` without a plan."""
    return None if plan is None else {**plan.to_dict(), "sentence": plan_sentence(plan), "note": guess_note(plan)}


def next_review_json(basis: ReportInputs) -> dict[str, Any] | None:
    """Next worthwhile review of a run as JSON values. One query."""
    return plan_json(next_review(basis))


def guess_note(plan: ReviewPlan | None) -> str:
    """Note that the plan rests on a guess; empty if it does not."""
    if plan is None or not plan.guessed:
        return ""
    return gettext("Rough estimate, as there are no ratings yet. Assumes the judge is off by a quarter of the scale.")


def expected_card(expected: ExpectedInterval | None, *, uses_neyman: bool) -> ExpectedCard | None:
    if expected is None:
        return None
    rows = tuple(
        StratumRow(
            stratum_in_words(stratum.name),
            stratum.size,
            stratum.sample_size,
            numbers.format_number(stratum.deviation, 3),
        )
        for stratum in expected.strata
    )
    half_width = _rounded_up(expected.half_width) if expected.half_width > 0 else ""
    return ExpectedCard(half_width, expected.guessed, uses_neyman, rows if len(rows) > 1 else ())


def goal_rows(goals: Sequence[PrecisionGoal]) -> tuple[GoalRow, ...]:
    return tuple(
        GoalRow(
            _rounded_up(goal.half_width),
            goal.items,
            numbers.format_duration(max(goal.minutes_each * 60.0, 60.0)),
            "–" if goal.covers_all or goal.difference is None else _rounded_up(goal.difference),
            goal.requested,
            goal.covers_all,
        )
        for goal in goals
    )


def _rounded_up(half_width: float) -> str:
    """Round up, so that no narrower interval is promised than expected; three decimals below 0.02."""
    decimals = 2 if half_width >= FINE_BELOW else 3
    return numbers.format_number(math.ceil(round(half_width * 10**decimals, 6)) / 10**decimals, decimals)
