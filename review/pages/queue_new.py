"""The page of a new queue, and the preview that follows the form."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.runs.models import Run
from review.forms.queue import QueueForm
from review.pages import numbers
from review.queues.preview import QueuePreview


@dataclass(frozen=True, slots=True)
class PreviewCard:
    """What the queue would be, in words; ``problem`` instead where it cannot be made like this."""

    items: int
    frame: int
    strata: int
    per_reviewer: int
    takes: str
    measured: bool
    problem: str


@dataclass(frozen=True, slots=True)
class QueueNewPage:
    """The form for a queue over a run's answers."""

    run_id: int
    run_name: str
    form: QueueForm
    error: str
    preview: PreviewCard | None


def preview_card(found: QueuePreview) -> PreviewCard:
    """The preview in words."""
    takes = numbers.about(max(found.seconds_each, 60.0))
    return PreviewCard(found.items, found.frame, found.strata, found.per_reviewer, takes, found.measured, "")


def impossible(problem: str) -> PreviewCard:
    """Why there is nothing to preview."""
    return PreviewCard(0, 0, 0, 0, "", measured=False, problem=problem)


def queue_new_page(run: Run, form: QueueForm, error: str = "", preview: PreviewCard | None = None) -> QueueNewPage:
    """The page with the form as it stands."""
    return QueueNewPage(run.pk, str(run), form, error, preview)
