"""Which of a reviewer's last steps in a queue can be taken back."""

from __future__ import annotations

from evaluation.accounts.models import User
from review.models.queues import Assignment, ItemEvent, ReviewQueue

State = Assignment.State
PASSED_ON = ("skip", "flag", "escalate")


def undoable(queue: ReviewQueue, user: User) -> int | None:
    """The assignment that was submitted or skipped last; ``None`` without one, where the judge was shown for it, or
    where the last step was to hand an item to a lead."""
    mine = Assignment.objects.filter(item__queue=queue, reviewer=user)
    rated = mine.filter(submitted_at__isnull=False).order_by("-submitted_at", "-pk").first()
    gone = mine.filter(state__in=[State.SKIPPED, State.FLAGGED])
    last = ItemEvent.objects.filter(assignment__in=gone, verb__in=PASSED_ON).order_by("-pk").first()
    if last and (rated is None or rated.submitted_at is None or last.created_at > rated.submitted_at):
        return last.assignment_id if last.verb == "skip" else None
    if rated and rated.revealed_at is None and rated.state in {State.SUBMITTED, State.FINISHED}:
        return rated.pk
    return None
