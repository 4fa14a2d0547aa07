"""When an item is finished, and when it needs a lead."""

from __future__ import annotations

from review.models.queues import Assignment, QueueMember, ReviewItem

RATED = (Assignment.State.SUBMITTED, Assignment.State.REVEALED, Assignment.State.FINISHED)
PASSED = (Assignment.State.SKIPPED, Assignment.State.FLAGGED)
SKIPS = 3  # so many different people passing an item on make it a lead's matter


def settle(item: ReviewItem, reviews_needed: int) -> bool:
    """Bring the state of an open item up to date; whether it has all its ratings.

    It is in dispute when three people passed it on, or when nobody is left who could still rate it.
    """
    states = list(Assignment.objects.filter(item=item).values_list("state", flat=True))
    rated = sum(state in RATED for state in states)
    if rated >= reviews_needed:
        _move(item, ReviewItem.State.DONE)
        return True
    passed = sum(state in PASSED for state in states)
    if passed >= SKIPS or (passed and rated + passed >= QueueMember.objects.filter(queue=item.queue_id).count()):
        _move(item, ReviewItem.State.DISPUTED)
    return False


def _move(item: ReviewItem, state: ReviewItem.State) -> None:
    if ReviewItem.objects.filter(pk=item.pk, state=ReviewItem.State.OPEN).update(state=state):
        item.state = state
