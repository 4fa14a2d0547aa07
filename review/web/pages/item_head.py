"""The head of the review screens by itself: queue, own progress, and nothing of an item."""

from __future__ import annotations

from dataclasses import dataclass

from review.models import ReviewQueue
from review.queues.progress import OwnProgress
from review.web.pages.review_card import Pace, pace


@dataclass(frozen=True, slots=True)
class ItemHead:
    """What the head shows; ``fields`` tells that there is something to rate and so a help to open."""

    queue_id: int
    queue_name: str
    pace: Pace
    fields: bool


def item_head(queue: ReviewQueue, own: OwnProgress) -> ItemHead:
    """The head above a card of the queue."""
    return ItemHead(queue.pk, queue.name, pace(own), fields=True)
