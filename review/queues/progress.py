"""How far a queue is: for its lead by item and reviewer, for a reviewer the own part alone."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Count, Max, Q

from evaluation.accounts.models import User
from review.models.queues import Assignment, ReviewItem, ReviewQueue
from review.models.ratings import Rating
from review.queues.settling import RATED

State = Assignment.State


@dataclass(frozen=True, slots=True)
class OwnProgress:
    """A reviewer's own part. ``items`` counts what the queue still serves or has finished; ``median_seconds`` is the
    own median time looked at an item, ``None`` without one."""

    items: int
    rated: int
    skipped: int
    flagged: int
    median_seconds: float | None


@dataclass(frozen=True, slots=True)
class ReviewerProgress:
    """One member's part, for the lead; by name and never ranked."""

    reviewer: User
    rated: int
    open: int
    skipped: int
    flagged: int


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """Items by state, ratings given and needed, and every member's part. ``reached`` counts items with a rating."""

    items: int
    open: int
    done: int
    disputed: int
    withdrawn: int
    reached: int
    ratings: int
    ratings_needed: int
    reviewers: tuple[ReviewerProgress, ...]

    @property
    def share(self) -> float:
        """Ratings given of those needed, 0 to 1."""
        return min(1.0, self.ratings / self.ratings_needed) if self.ratings_needed else 0.0


def own_progress(queue: ReviewQueue, user: User) -> OwnProgress:
    """The person's own progress and pace."""
    return own_progresses([queue], user)[queue.pk]


def own_progresses(queues: Sequence[ReviewQueue], user: User) -> dict[int, OwnProgress]:
    """The same for several queues, by primary key, in three queries."""
    mine = Assignment.objects.filter(item__queue__in=queues, reviewer=user)
    states = Counter(mine.values_list("item__queue", "state"))
    served = ReviewItem.objects.filter(queue__in=queues).exclude(state=ReviewItem.State.WITHDRAWN)
    items = dict(served.order_by().values_list("queue").annotate(Count("pk")))
    looked = Rating.objects.filter(assignment__in=mine, phase="initial", active_ms__isnull=False)
    times: dict[int, list[int]] = {}
    rows = looked.values_list("assignment", "assignment__item__queue").annotate(Max("active_ms"))
    for _, queue_id, milliseconds in rows.order_by():
        times.setdefault(queue_id, []).append(milliseconds)
    return {
        queue.pk: OwnProgress(
            items=items.get(queue.pk, 0),
            rated=sum(states[queue.pk, state.value] for state in RATED),
            skipped=states[queue.pk, State.SKIPPED.value],
            flagged=states[queue.pk, State.FLAGGED.value],
            median_seconds=_median_seconds(times.get(queue.pk, ())),
        )
        for queue in queues
    }


def ratings_given(queues: Sequence[ReviewQueue]) -> dict[int, tuple[int, int]]:
    """Ratings given and needed of several queues, by primary key, in two queries."""
    given = Assignment.objects.filter(item__queue__in=queues, state__in=RATED).order_by()
    rated = dict(given.values_list("item__queue").annotate(Count("pk")))
    served = ReviewItem.objects.filter(queue__in=queues).exclude(state=ReviewItem.State.WITHDRAWN).order_by()
    items = dict(served.values_list("queue").annotate(Count("pk")))
    return {one.pk: (rated.get(one.pk, 0), items.get(one.pk, 0) * one.reviews_needed) for one in queues}


def queue_progress(queue: ReviewQueue) -> QueueProgress:
    """The queue's progress for its lead."""
    items = dict(queue.items.values("state").annotate(n=Count("pk")).values_list("state", "n"))
    given = Assignment.objects.filter(item__queue=queue, state__in=RATED)
    counted = given.aggregate(ratings=Count("pk"), reached=Count("item", distinct=True))
    total = sum(items.values())
    served = total - items.get(ReviewItem.State.WITHDRAWN, 0)
    return QueueProgress(
        items=total,
        open=items.get(ReviewItem.State.OPEN, 0),
        done=items.get(ReviewItem.State.DONE, 0),
        disputed=items.get(ReviewItem.State.DISPUTED, 0),
        withdrawn=items.get(ReviewItem.State.WITHDRAWN, 0),
        reached=counted["reached"],
        ratings=counted["ratings"],
        ratings_needed=served * queue.reviews_needed,
        reviewers=tuple(_members(queue)),
    )


def _members(queue: ReviewQueue) -> Iterable[ReviewerProgress]:
    held = Q(reviewer__assignments__item__queue=queue)
    rows = (
        queue.members.select_related("reviewer")
        .annotate(
            rated=_count(held & Q(reviewer__assignments__state__in=RATED)),
            leased=_count(held & Q(reviewer__assignments__state=State.LEASED)),
            skipped=_count(held & Q(reviewer__assignments__state=State.SKIPPED)),
            flagged=_count(held & Q(reviewer__assignments__state=State.FLAGGED)),
        )
        .order_by("reviewer__username")
    )
    for row in rows:
        yield ReviewerProgress(row.reviewer, row.rated, row.leased, row.skipped, row.flagged)


def _count(condition: Q) -> Count:
    return Count("reviewer__assignments", filter=condition, distinct=True)


def _median_seconds(milliseconds: Iterable[int]) -> float | None:
    times = list(milliseconds)
    return statistics.median(times) / 1000 if times else None
