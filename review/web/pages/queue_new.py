"""The page of a new queue, and the preview that follows the form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.models import Run
from evaluation.wording import numbers
from review.plans.wording import ExpectedCard, GoalRow
from review.queues.preview import QueuePreview
from review.web.forms.queue import QueueForm


@dataclass(frozen=True, slots=True)
class PreviewCard:
    """What the queue would be, in words; ``problem`` instead where it cannot be made like this. ``expected`` is for a
    single run; ``by_run`` has the half-width for each of several, empty where it cannot be told."""

    items: int
    earlier: int
    frame: int
    strata: int
    per_reviewer: int
    takes: str
    measured: bool
    problem: str
    expected: ExpectedCard | None = None
    by_run: tuple[tuple[str, str], ...] = ()
    goals: tuple[GoalRow, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueNewPage:
    """The form for a queue over a run's answers; ``others``: further runs can be mixed in."""

    run_id: int
    run_name: str
    form: QueueForm
    others: bool
    error: str
    preview: PreviewCard | None


def preview_card(
    found: QueuePreview, expected: Sequence[tuple[str, ExpectedCard | None]] = (), goals: tuple[GoalRow, ...] = ()
) -> PreviewCard:
    """The preview in words, with the interval to be expected of each run and what others would take."""
    several = len(expected) > 1
    return PreviewCard(
        items=found.items,
        earlier=found.earlier,
        frame=found.frame,
        strata=found.strata,
        per_reviewer=found.per_reviewer,
        takes=numbers.about(max(found.seconds_each, 60.0)),
        measured=found.measured,
        problem="",
        expected=expected[0][1] if len(expected) == 1 else None,
        by_run=tuple((name, card.half_width if card else "") for name, card in expected) if several else (),
        goals=goals,
    )


def impossible(problem: str) -> PreviewCard:
    """Why there is nothing to preview."""
    return PreviewCard(0, 0, 0, 0, 0, "", measured=False, problem=problem)


def queue_new_page(run: Run, form: QueueForm, error: str = "", preview: PreviewCard | None = None) -> QueueNewPage:
    """The page with the form as it stands."""
    return QueueNewPage(run.pk, str(run), form, form.has_others, error, preview)
