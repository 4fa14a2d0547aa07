"""When an item is finished, needs a lead, or comes again.

Hidden repeats are the same item again to the same reviewer, much later and unmarked. They tell how far a person agrees
with themselves and enter no other figure. Which items come again is chance, from the queue's seed. The judge is shown
for neither occasion: a second rating that has seen the judge would say nothing about the first."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet

from review.evidence.answers import by_chance, repeat_key
from review.evidence.changes import touch
from review.models import Assignment, ItemEvent, QueueMember, Reservation, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.models.statements import ITEM, SETTLE, STATES

RATED = (Assignment.State.SUBMITTED, Assignment.State.REVEALED, Assignment.State.FINISHED)
PASSED = (Assignment.State.SKIPPED, Assignment.State.FLAGGED)
SKIPS = 3  # so many different people passing an item on make it a lead's matter


def locked(item_id: int) -> ReviewItem:
    """The item as it is now, and nobody else's to change before the transaction ends. Whoever changes an assignment
    locks its item first: the second of two who finish at once counts the first, and nobody waits crosswise. What
    is kept of its runs is old from then on."""
    if (row := ITEM.first(item=item_id)) is None:
        raise ReviewItem.DoesNotExist
    item: ReviewItem = row[0]
    touch([item.answer_id])
    return item


def settle(row: ReviewItem) -> bool:
    """Bring the state of an item that is :func:`locked` up to date with its assignments; whether it has all its
    ratings.

    It is in dispute when three people passed it on, when nobody is left who could still rate it, and from an
    escalation on. A withdrawn item stays withdrawn. Call it after the change of an assignment, in its transaction.
    """
    states = [state for (state,) in STATES.rows(item=row.pk)]
    rated = sum(state in RATED for state in states)
    state = _state(row, rated, sum(state in PASSED for state in states))
    if state != row.state:
        SETTLE.run(item=row.pk, state=state)
        row.state = state
    return rated >= row.reviews_needed


def _state(row: ReviewItem, rated: int, passed: int) -> str:
    if row.state == ReviewItem.State.WITHDRAWN or _escalated(row):
        return row.state
    if rated >= row.reviews_needed:
        return ReviewItem.State.DONE
    if passed >= SKIPS or (passed and rated + passed >= _people(row)):
        return ReviewItem.State.DISPUTED
    return ReviewItem.State.OPEN


def _people(row: ReviewItem) -> int:
    """How many may rate the item at all."""
    if row.reserved:
        return Reservation.objects.filter(item=row.pk).count()
    return QueueMember.objects.filter(queue=row.queue_id).count()


def _escalated(row: ReviewItem) -> bool:
    """Whether an escalation that nobody has ruled on holds the item in dispute."""
    unruled = ItemEvent.objects.filter(assignment__item=row, verb="escalate", rulings__isnull=True)
    return row.state == ReviewItem.State.DISPUTED and unruled.exists()


def comes_again(assignment: Assignment) -> bool:
    """Whether this item is one of the person's repeated ones; no query in a queue without repeats."""
    item, queue = assignment.item, assignment.item.queue
    if queue.repeat_share <= 0 or item.occasion != FIRST_OCCASION:
        return False
    share = queue.repeat_share * (queue.repeat_until + queue.repeat_gap) / max(queue.repeat_until, 1)
    if not by_chance("repeat", share, queue.seed, item.pk, assignment.reviewer_id):
        return False
    early = QueueMember.objects.filter(queue=queue, reviewer=assignment.reviewer_id, served__lte=queue.repeat_until)
    return early.exists() or _planned(assignment).exists()


def plan_repeat(assignment: Assignment) -> None:
    """Make the item's repeat for the person, once. Call it in the transaction that stores the first rating."""
    if _planned(assignment).exists():
        return
    item, queue = assignment.item, assignment.item.queue
    member = QueueMember.objects.get(queue=queue, reviewer=assignment.reviewer_id)
    same = ReviewItem.objects.filter(queue=queue, answer=item.answer_id)
    occasion = 1 + (same.aggregate(highest=Max("occasion"))["highest"] or FIRST_OCCASION)
    again = ReviewItem.objects.create(
        queue=queue,
        answer_id=item.answer_id,
        run_id=item.run_id,
        occasion=occasion,
        reserved=True,
        asks=item.asks,
        shuffle_key=repeat_key(queue.seed, item.pk),
    )
    Reservation.objects.create(item=again, reviewer_id=assignment.reviewer_id, after=member.served + queue.repeat_gap)


def due_repeats(queue: ReviewQueue, member: QueueMember) -> Iterator[tuple[ReviewItem, bool]]:
    """Repeats whose time has come, the longest due first; marked where the person let the lease lapse. Not those whose
    first rating was taken back, or followed by a look at the judge."""
    first = Assignment.objects.filter(
        reviewer=member.reviewer_id,
        queue=queue,
        item__answer=OuterRef("answer"),
        item__occasion=FIRST_OCCASION,
        state__in=RATED,
        revealed_at__isnull=True,
    )
    own = Assignment.objects.filter(item=OuterRef("pk"), reviewer=member.reviewer_id)
    rows = ReviewItem.objects.filter(
        Exists(first),
        ~Exists(own) | Q(Exists(own.filter(state=Assignment.State.EXPIRED))),
        queue=queue,
        state=ReviewItem.State.OPEN,
        occasion__gt=FIRST_OCCASION,
        reservations__reviewer=member.reviewer_id,
        reservations__after__lte=member.served,
    )
    found = rows.annotate(lapsed=Exists(own), due=F("reservations__after")).order_by("due")[:1]
    yield from ((item, bool(item.lapsed)) for item in found)


def _planned(assignment: Assignment) -> QuerySet[Reservation]:
    return Reservation.objects.filter(
        reviewer=assignment.reviewer_id,
        item__queue=assignment.item.queue_id,
        item__answer=assignment.item.answer_id,
        item__occasion__gt=FIRST_OCCASION,
    )
