"""The list of queues and the page of one: for leads everybody's progress, for reviewers their own alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.safestring import SafeString
from django.utils.translation import get_language

from evaluation.wording.markdown import render
from review.models import QueueMetric, ReviewQueue
from review.queues.progress import OwnProgress, QueueProgress
from review.web.pages.adjudication import CaseRow
from review.web.pages.review_card import Pace, pace


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue in the list. ``own`` is the person's part, ``None`` for who only leads it; ``share`` (0 to 100) and
    ``ratings`` are of the whole queue, for leads."""

    pk: int
    name: str
    open: bool
    example: bool
    assisted: bool
    leads: bool
    own: Pace | None
    left: int
    share: int
    ratings: str
    deadline: datetime | None


@dataclass(frozen=True, slots=True)
class QueueListPage:
    """The queues a person leads or is a member of."""

    rows: tuple[QueueRow, ...]
    leads: bool


@dataclass(frozen=True, slots=True)
class Member:
    """A reviewer of the queue with their part, for leads."""

    name: str
    rated: int
    open: int
    skipped: int
    flagged: int


@dataclass(frozen=True, slots=True)
class LeadView:
    """What only leads see of a queue. ``disputes`` wait for a decision; nothing in them tells who said what."""

    progress: QueueProgress
    share: int
    members: tuple[Member, ...]
    disputes: tuple[CaseRow, ...]
    runs: tuple[tuple[int, str], ...]
    draws: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueuePage:
    """A queue. ``own`` is the person's part, ``None`` for who only leads it; ``lead`` is ``None`` for reviewers."""

    pk: int
    name: str
    open: bool
    example: bool
    mode: str
    reveal: str
    reviews_needed: int
    guideline: SafeString
    deadline: datetime | None
    metrics: tuple[str, ...]
    own: Pace | None
    left: int
    lead: LeadView | None


def left_of(own: OwnProgress | None) -> int:
    """How many items may still come to the person."""
    return 0 if own is None else max(0, own.items - own.rated - own.skipped - own.flagged)


def queue_row(queue: ReviewQueue, own: OwnProgress | None, ratings: tuple[int, int] | None) -> QueueRow:
    """A queue as a row; ``ratings`` given and needed are for who leads it."""
    given, needed = ratings or (0, 0)
    return QueueRow(
        pk=queue.pk,
        name=queue.name,
        open=queue.state == ReviewQueue.State.OPEN,
        example=queue.example,
        assisted=queue.mode == ReviewQueue.Mode.ASSISTED,
        leads=ratings is not None,
        own=pace(own) if own else None,
        left=left_of(own),
        share=min(100, round(100 * given / needed)) if needed else 0,
        ratings=f"{given} / {needed}",
        deadline=queue.deadline,
    )


def queue_page(
    queue: ReviewQueue, metrics: Sequence[QueueMetric], own: OwnProgress | None, lead: LeadView | None
) -> QueuePage:
    """The page of a queue for this person."""
    language = get_language() or "en"
    return QueuePage(
        pk=queue.pk,
        name=queue.name,
        open=queue.state == ReviewQueue.State.OPEN,
        example=queue.example,
        mode=str(queue.get_mode_display()),
        reveal=str(queue.get_reveal_display()),
        reviews_needed=queue.reviews_needed,
        guideline=render(queue.guideline),
        deadline=queue.deadline,
        metrics=tuple(row.metric.title.get(language) or row.metric.name for row in metrics),
        own=pace(own) if own else None,
        left=left_of(own),
        lead=lead,
    )


def lead_view(
    progress: QueueProgress,
    disputes: Sequence[CaseRow],
    runs: Sequence[tuple[int, str]],
    draws: Sequence[str],
) -> LeadView:
    """The lead's part of the page."""
    return LeadView(
        progress=progress,
        share=round(100 * progress.share),
        members=tuple(
            Member(one.reviewer.known_as, one.rated, one.open, one.skipped, one.flagged) for one in progress.reviewers
        ),
        disputes=tuple(disputes),
        runs=tuple(runs),
        draws=tuple(draws),
    )
