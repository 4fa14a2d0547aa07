"""What a lead does with a queue that is under way: give items to other people, take them back, give more time.

Ratings stay whatever happens here; every step is in the audit log.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.models import RoleGrant, User
from review.models import Assignment, ItemEvent, QueueMember, Reservation, ReviewItem, ReviewQueue
from review.models.queue_spec import SETTINGS
from review.models.queues import FIRST_OCCASION
from review.queues.making import add_members
from review.ratings.leases import lease_end
from review.ratings.settling import RATED, locked, settle

State = Assignment.State


@dataclass(frozen=True, slots=True)
class Moved:
    """``moved`` items changed hands; ``kept`` did not, because the other person had them before."""

    moved: int
    kept: int


def reassign(
    queue: ReviewQueue, giver: User, taker: User, *, by: User | None, items: Collection[int] | None = None
) -> Moved:
    """Give what one person has in hand or kept for them, and has not rated, to another; all of it, or some items.

    What was in a pool is kept for the taker then (and, where it needs several people, for all but the giver). Drafts
    stay with who wrote them.

    :raises Refused: ``not_a_reviewer`` for who is not a member, or ``same_person``.
    """
    _check_members(queue, [giver, taker])
    if giver.pk == taker.pk:
        raise Refused("same_person")
    with transaction.atomic():
        rows = _unrated(queue, giver)
        found = list((rows if items is None else rows.filter(pk__in=items)).select_for_update(no_key=True))
        had = set(Assignment.objects.filter(item__in=found, reviewer=taker).values_list("item", flat=True))
        moving = [item for item in found if item.pk not in had]
        _release(Assignment.objects.filter(item__in=moving, reviewer=giver))
        _keep_for(queue, moving, giver, taker)
        told = {"items": len(moving), "giver": giver.pk, "taker": taker.pk}
        audit.record(by, "queue_reassigned", queue, **told)
    return Moved(len(moving), len(found) - len(moving))


def name_people(queue: ReviewQueue, items: Collection[int], people: Sequence[User], *, by: User | None) -> int:
    """Keep items for exactly these people and whoever has rated them; so many reviewers each of them takes then. How
    many items that were.

    :raises Refused: ``not_a_reviewer``, ``no_reviewers``, or ``queue_rule`` for more than ten people.
    """
    if not people:
        raise Refused("no_reviewers")
    _check_members(queue, people)
    wanted = {one.pk for one in people}
    with transaction.atomic():
        rows = queue.items.filter(pk__in=items, occasion=FIRST_OCCASION).exclude(state=ReviewItem.State.WITHDRAWN)
        found = list(rows.select_for_update(no_key=True).order_by("pk"))
        for item in found:
            _name(item, wanted)
        audit.record(by, "queue_people_named", queue, items=len(found), people=sorted(wanted))
    return len(found)


def release_all(queue: ReviewQueue, reviewer: User, *, by: User | None) -> int:
    """Give back everything a person has in hand; how many items that were."""
    with transaction.atomic():
        held = Assignment.objects.filter(queue=queue, reviewer=reviewer)
        # Locked: what is rated or given back at the same moment is not given back by this.
        count = _release(held.select_for_update(no_key=True).order_by("pk"))
        audit.record(by, "queue_released", queue, reviewer=reviewer.pk, items=count)
    return count


def extend_all(queue: ReviewQueue, reviewer: User, *, by: User | None) -> int:
    """Prolong everything a person has in hand from now on; how many items that were."""
    with transaction.atomic():
        held = Assignment.objects.filter(queue=queue, reviewer=reviewer, state=State.LEASED)
        count = held.update(lease_until=lease_end(queue))
        audit.record(by, "queue_extended", queue, reviewer=reviewer.pk, items=count)
    return count


def set_deadline(queue: ReviewQueue, deadline: datetime | None, *, by: User | None) -> None:
    """Move the deadline, or take it away.

    :raises Refused: ``deadline_passed`` for one that is not to come.
    """
    if deadline is not None and deadline <= timezone.now():
        raise Refused("deadline_passed")
    with transaction.atomic():
        ReviewQueue.objects.filter(pk=queue.pk).update(deadline=deadline)
        queue.deadline = deadline
        audit.record(by, "queue_deadline", queue, deadline=deadline.isoformat() if deadline else None)


def invite(queue: ReviewQueue, people: Sequence[User], *, by: User | None) -> None:
    """Let more people rate the queue's items.

    :raises Refused: ``no_reviewers``, or ``not_in_project``.
    """
    if not people:
        raise Refused("no_reviewers")
    granted = RoleGrant.objects.filter(project=queue.project_id, user__in=people).values_list("user_id", flat=True)
    known = set(granted) | {one.pk for one in people if one.is_superuser}
    if strangers := [one.get_username() for one in people if one.pk not in known]:
        raise Refused("not_in_project", people=strangers)
    with transaction.atomic():
        add_members(queue, people)
        audit.record(by, "queue_people_added", queue, people=sorted(one.pk for one in people))


def _unrated(queue: ReviewQueue, user: User) -> QuerySet[ReviewItem]:
    """Open items the person holds or has kept for them, and neither rated nor passed on; no hidden repeats."""
    mine = Assignment.objects.filter(item=OuterRef("pk"), reviewer=user)
    kept = Reservation.objects.filter(item=OuterRef("pk"), reviewer=user)
    open_ones = queue.items.filter(state=ReviewItem.State.OPEN, occasion=FIRST_OCCASION)
    passed = mine.exclude(state__in=[State.LEASED, State.EXPIRED])
    return open_ones.filter(
        Exists(mine.filter(state=State.LEASED)) | (Q(reserved=True) & Exists(kept)), ~Exists(passed)
    ).order_by("pk")


def _release(rows: QuerySet[Assignment]) -> int:
    """Take back what is in hand of these; how many that were."""
    ids = list(rows.filter(state=State.LEASED).values_list("pk", flat=True))
    Assignment.objects.filter(pk__in=ids).update(state=State.EXPIRED)
    ItemEvent.objects.bulk_create([ItemEvent(assignment_id=pk, verb="release") for pk in ids])
    return len(ids)


def _keep_for(queue: ReviewQueue, items: Sequence[ReviewItem], giver: User, taker: User) -> None:
    pooled = [item for item in items if not item.reserved]
    members = list(queue.members.exclude(reviewer=giver).values_list("reviewer_id", flat=True)) if pooled else []
    rows = [Reservation(item=item, reviewer=taker) for item in items]
    rows += [
        Reservation(item=item, reviewer_id=member)
        for item in pooled
        if item.reviews_needed > 1
        for member in members
        if member != taker.pk
    ]
    ReviewItem.objects.filter(pk__in=[item.pk for item in pooled]).update(reserved=True)
    Reservation.objects.filter(item__in=items, reviewer=giver).delete()
    Reservation.objects.bulk_create(rows, ignore_conflicts=True)


def _name(item: ReviewItem, wanted: set[int]) -> None:
    rows = Assignment.objects.filter(item=item)
    rated = set(rows.filter(state__in=RATED).values_list("reviewer_id", flat=True))
    people = wanted | rated
    SETTINGS["reviews_needed"].check(len(people))
    _release(rows.exclude(reviewer__in=people))
    Reservation.objects.filter(item=item).exclude(reviewer__in=people).delete()
    Reservation.objects.bulk_create(
        [Reservation(item=item, reviewer_id=pk) for pk in sorted(people)], ignore_conflicts=True
    )
    ReviewItem.objects.filter(pk=item.pk).update(reserved=True, reviews_needed=len(people))
    settle(locked(item.pk))


def _check_members(queue: ReviewQueue, people: Sequence[User]) -> None:
    members = set(QueueMember.objects.filter(queue=queue).values_list("reviewer_id", flat=True))
    if strangers := sorted({one.get_username() for one in people if one.pk not in members}):
        raise Refused("not_a_reviewer", people=strangers)
