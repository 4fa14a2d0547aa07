"""State of a review item: finished, in dispute, or to be repeated.

A hidden repeat is an item that the same reviewer gets again, much later and unmarked. Repeats measure how far people
agree with themselves and enter no other figure. Items to repeat are drawn by the queue's seed. The judge is shown on
neither occasion, because a second rating after seeing the judge says nothing about the first."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet

from review.evidence.answers import is_sampled, repeat_key
from review.evidence.invalidation import invalidate_figures
from review.models import Assignment, ItemEvent, QueueMember, Reservation, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.models.statements import ASSIGNMENT_STATES, ITEM, SET_ITEM_STATE

RATED = (Assignment.State.SUBMITTED, Assignment.State.REVEALED, Assignment.State.FINISHED)
PASSED = (Assignment.State.SKIPPED, Assignment.State.FLAGGED)
# An item that so many people passed on goes to a lead.
MAX_SKIPS = 3


def lock_item(item_id: int) -> ReviewItem:
    """Lock an item until the end of the transaction, and invalidate the cached figures of its runs.

    Every change of an assignment locks its item first. Of two simultaneous submits the second then counts the first,
    and no deadlock is possible."""
    if (row := ITEM.first(item=item_id)) is None:
        raise ReviewItem.DoesNotExist
    item: ReviewItem = row[0]
    invalidate_figures([item.answer_id])
    return item


def update_item_state(row: ReviewItem) -> bool:
    """Update the state of a locked item from its assignments; returns whether it has all its ratings.

    An item is in dispute if three people passed it on, if nobody is left to rate it, or after an escalation. Withdrawn
    items stay withdrawn. Call it in the transaction that changes an assignment."""
    states = [state for (state,) in ASSIGNMENT_STATES.rows(item=row.pk)]
    rated_count = sum(state in RATED for state in states)
    state = _item_state(row, rated_count, sum(state in PASSED for state in states))
    if state != row.state:
        SET_ITEM_STATE.run(item=row.pk, state=state)
        row.state = state
    return rated_count >= row.reviews_needed


def _item_state(row: ReviewItem, rated_count: int, passed_count: int) -> str:
    if row.state == ReviewItem.State.WITHDRAWN or _is_escalated(row):
        return row.state
    if rated_count >= row.reviews_needed:
        return ReviewItem.State.DONE
    if passed_count >= MAX_SKIPS or (passed_count and rated_count + passed_count >= _rater_count(row)):
        return ReviewItem.State.DISPUTED
    return ReviewItem.State.OPEN


def _rater_count(row: ReviewItem) -> int:
    """Number of people who may rate the item."""
    if row.reserved:
        return Reservation.objects.filter(item=row.pk).count()
    return QueueMember.objects.filter(queue=row.queue_id).count()


def _is_escalated(row: ReviewItem) -> bool:
    """Return whether an escalation without a ruling holds the item in dispute."""
    unruled = ItemEvent.objects.filter(assignment__item=row, verb="escalate", rulings__isnull=True)
    return row.state == ReviewItem.State.DISPUTED and unruled.exists()


def needs_repeat(assignment: Assignment) -> bool:
    """Return whether the person gets this item again; no query in a queue without repeats."""
    item, queue = assignment.item, assignment.item.queue
    if queue.repeat_share <= 0 or item.occasion != FIRST_OCCASION:
        return False
    share = queue.repeat_share * (queue.repeat_until + queue.repeat_gap) / max(queue.repeat_until, 1)
    if not is_sampled("repeat", share, queue.seed, item.pk, assignment.reviewer_id):
        return False
    early_memberships = QueueMember.objects.filter(
        queue=queue, reviewer=assignment.reviewer_id, served__lte=queue.repeat_until
    )
    return early_memberships.exists() or _planned_repeats(assignment).exists()


def plan_repeat(assignment: Assignment) -> None:
    """Create the item's repeat for the person, once. Call it in the transaction that stores the first rating."""
    if _planned_repeats(assignment).exists():
        return
    item, queue = assignment.item, assignment.item.queue
    member = QueueMember.objects.get(queue=queue, reviewer=assignment.reviewer_id)
    items_of_answer = ReviewItem.objects.filter(queue=queue, answer=item.answer_id)
    occasion = 1 + (items_of_answer.aggregate(highest=Max("occasion"))["highest"] or FIRST_OCCASION)
    repeat = ReviewItem.objects.create(
        queue=queue,
        answer_id=item.answer_id,
        run_id=item.run_id,
        occasion=occasion,
        reserved=True,
        metric_ids=item.metric_ids,
        shuffle_key=repeat_key(queue.seed, item.pk),
    )
    Reservation.objects.create(item=repeat, reviewer_id=assignment.reviewer_id, after=member.served + queue.repeat_gap)


def due_repeats(queue: ReviewQueue, member: QueueMember) -> Iterator[tuple[ReviewItem, bool]]:
    """Yield due repeats, longest due first, marked if the person let the lease expire. Repeats are left out if the
    first rating was undone or the judge was shown after it."""
    first_assignments = Assignment.objects.filter(
        reviewer=member.reviewer_id,
        queue=queue,
        item__answer=OuterRef("answer"),
        item__occasion=FIRST_OCCASION,
        state__in=RATED,
        revealed_at__isnull=True,
    )
    repeat_assignments = Assignment.objects.filter(item=OuterRef("pk"), reviewer=member.reviewer_id)
    rows = ReviewItem.objects.filter(
        Exists(first_assignments),
        ~Exists(repeat_assignments) | Q(Exists(repeat_assignments.filter(state=Assignment.State.EXPIRED))),
        queue=queue,
        state=ReviewItem.State.OPEN,
        occasion__gt=FIRST_OCCASION,
        reservations__reviewer=member.reviewer_id,
        reservations__after__lte=member.served,
    )
    due_items = rows.annotate(lapsed=Exists(repeat_assignments), due=F("reservations__after")).order_by("due")[:1]
    yield from ((item, bool(item.lapsed)) for item in due_items)


def _planned_repeats(assignment: Assignment) -> QuerySet[Reservation]:
    return Reservation.objects.filter(
        reviewer=assignment.reviewer_id,
        item__queue=assignment.item.queue_id,
        item__answer=assignment.item.answer_id,
        item__occasion__gt=FIRST_OCCASION,
    )
