"""What the form of a new queue would come to, as the preview beside it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.models import Run
from evaluation.wording import numbers
from review.plans.wording import ExpectedCard, GoalRow
from review.queues.preview import QueuePreview
from review.web.forms.queue import QueueForm


@dataclass(frozen=True, slots=True)
class NewQueuePage:
    """The form of a new queue on a run; ``error`` says why it could not be made."""

    run: Run
    form: QueueForm
    error: str = ""


@dataclass(frozen=True, slots=True)
class PreviewCard:
    """What the queue would be, in words; ``problem`` instead where it cannot be made like this. ``expected`` is for a
    single run; ``by_run`` has the half-width for each of several, empty where it cannot be told."""

    problem: str = ""
    found: QueuePreview | None = None
    takes: str = ""
    expected: ExpectedCard | None = None
    by_run: tuple[tuple[str, str], ...] = ()
    goals: tuple[GoalRow, ...] = ()


def preview_card(
    found: QueuePreview, expected: Sequence[tuple[str, ExpectedCard | None]] = (), goals: tuple[GoalRow, ...] = ()
) -> PreviewCard:
    """The preview in words, with the interval to be expected of each run and what others would take."""
    several = len(expected) > 1
    return PreviewCard(
        found=found,
        takes=numbers.about(max(found.seconds_each, 60.0)),
        expected=expected[0][1] if len(expected) == 1 else None,
        by_run=tuple((name, card.half_width if card else "") for name, card in expected) if several else (),
        goals=goals,
    )
