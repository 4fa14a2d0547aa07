"""The next review that is worth while after a run: how many answers, how long, and how narrow the score gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluation.models import Run
from review.plans.errors import Errors, errors_of
from review.queues.making import reading_seconds, usual_seconds
from review.reports.gathering import Gathered
from review.statistics.precision.width import PlannedStratum, expected_half_width, labels_for_width

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
    now = _present(basis)
    waiting = len(errors.waiting - errors.by_answer.keys())
    plan = _finishing(basis, errors, waiting) if waiting else _worthwhile(basis, errors, now)
    if plan is None:
        return None
    items, half_width = plan
    pace = usual_seconds(basis.run.project_id)
    seconds = items * (pace or reading_seconds(len(errors.parts)))
    return ReviewPlan(items, seconds / 60.0, half_width, now, errors.guessed, pace is not None, bool(waiting))


def _finishing(basis: Gathered, errors: Errors, waiting: int) -> tuple[int, float] | None:
    """What is drawn comes first: its ratings and those there are count together."""
    frame = _frame(basis)
    labels = len(errors.by_answer) + waiting
    stratum = PlannedStratum("", frame, errors.deviation)
    return waiting, expected_half_width([stratum], {"": min(labels, frame)})


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


def _present(basis: Gathered) -> float | None:
    figure = basis.correction.overall(basis.profile, basis.machine)
    return None if figure.low is None or figure.high is None else (figure.high - figure.low) / 2.0
