"""Which of a reviewer's last steps in a queue can be taken back."""

from __future__ import annotations

from evaluation.models import User
from review.models import Assignment, ItemEvent, ReviewQueue
from review.models.statements import LAST_RATED
from review.queues.progress import OwnProgress

State = Assignment.State
PASSED_ON = ("skip", "flag", "escalate")


def undoable(queue: ReviewQueue, user: User, own: OwnProgress) -> int | None:
    """The assignment that was submitted or skipped last; ``None`` without one, where the judge was shown for it, or
    where the last step was to hand an item to a lead. ``own`` is the person's progress in the queue."""
    row = LAST_RATED.first(queue=queue.pk, user=user.pk)
    rated: Assignment | None = row[0] if row else None
    last = _last_passed_on(queue, user) if own.skipped or own.flagged else None
    if last and (rated is None or rated.submitted_at is None or last.created_at > rated.submitted_at):
        return last.assignment_id if last.verb == "skip" else None
    if rated and rated.revealed_at is None and rated.state in {State.SUBMITTED, State.FINISHED}:
        return rated.pk
    return None


def _last_passed_on(queue: ReviewQueue, user: User) -> ItemEvent | None:
    gone = Assignment.objects.filter(queue=queue, reviewer=user, state__in=[State.SKIPPED, State.FLAGGED])
    return ItemEvent.objects.filter(assignment__in=gone, verb__in=PASSED_ON).order_by("-pk").first()
