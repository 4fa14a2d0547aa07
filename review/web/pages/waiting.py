"""The pages between items: nothing to rate now, an item that is finished, an item that was passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext

from evaluation.core.scales import Scale, ScaleKind
from evaluation.wording import numbers
from review.evidence.rating_input import Given
from review.models import Assignment, ReviewQueue
from review.queues.progress import OwnProgress
from review.ratings.card import Card, CardMetric
from review.web.pages.review_card import Pace, Text, pace, text


@dataclass(frozen=True, slots=True)
class WaitingPage:
    """Nothing to rate in the queue now. ``complete``: the person has been through all of it; ``reason`` is a refusal,
    such as a closed queue."""

    queue_id: int
    queue_name: str
    pace: Pace | None
    complete: bool
    undo: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class RatedMetric:
    """A metric with the first and, where there is one, the final value."""

    title: str
    first: str
    final: str


@dataclass(frozen=True, slots=True)
class FinishedPage:
    """An item the person has rated, to be looked back at."""

    assignment_id: int
    queue_id: int
    queue_name: str
    question: Text
    answer: Text
    ratings: tuple[RatedMetric, ...]


@dataclass(frozen=True, slots=True)
class PassedOnPage:
    """An item the person has skipped or flagged; ``undoable`` where it can be taken back."""

    assignment_id: int
    queue_id: int
    queue_name: str
    state: str
    undoable: bool


def waiting_page(queue: ReviewQueue, own: OwnProgress | None, reason: str = "", undo: int | None = None) -> WaitingPage:
    """The page of a queue that has nothing for the person now."""
    through = own is not None and own.rated + own.skipped + own.flagged >= own.items
    return WaitingPage(queue.pk, queue.name, pace(own) if own else None, through, undo, reason)


def finished_page(card: Card) -> FinishedPage:
    """The person's own ratings of a finished item."""
    ratings = tuple(
        RatedMetric(metric.title, _value(card.given, metric), _value(card.final, metric)) for metric in card.metrics
    )
    return FinishedPage(card.id, card.queue_id, card.queue_name, text(card.question), text(card.answer), ratings)


def passed_on_page(assignment: Assignment) -> PassedOnPage:
    """The page of an item that was put down without a rating."""
    queue = assignment.item.queue
    skipped = assignment.state == Assignment.State.SKIPPED
    return PassedOnPage(assignment.pk, queue.pk, queue.name, str(assignment.get_state_display()), skipped)


def _value(given: Mapping[str, Given], metric: CardMetric) -> str:
    one = given.get(metric.name)
    if one is None:
        return ""
    if one.cannot_judge:
        return gettext("cannot judge")
    scale = Scale(ScaleKind(metric.kind), metric.low, metric.high, metric.labels)
    return numbers.on_scale(one.label if one.value is None else one.value, scale)
