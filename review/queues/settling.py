"""When an item is finished, and when it needs a lead."""

from __future__ import annotations

from review.models import Assignment, ItemEvent, QueueMember, Reservation, ReviewItem
from review.models.statements import ITEM, SETTLE, STATES

RATED = (Assignment.State.SUBMITTED, Assignment.State.REVEALED, Assignment.State.FINISHED)
PASSED = (Assignment.State.SKIPPED, Assignment.State.FLAGGED)
SKIPS = 3  # so many different people passing an item on make it a lead's matter


def locked(item_id: int) -> ReviewItem:
    """The item as it is now, and nobody else's to change before the transaction ends. Whoever changes an assignment
    locks its item first: the second of two who finish at once counts the first, and nobody waits crosswise."""
    if (row := ITEM.first(item=item_id)) is None:
        raise ReviewItem.DoesNotExist
    item: ReviewItem = row[0]
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
