"""Which of a reviewer's last steps in a queue can be taken back."""

from __future__ import annotations

from evaluation.accounts.models import User
from review.models.queues import Assignment, ItemEvent, ReviewQueue

State = Assignment.State


def undoable(queue: ReviewQueue, user: User) -> int | None:
    """The assignment that was submitted or skipped last, unless the judge was shown for it; ``None`` without one."""
    mine = Assignment.objects.filter(item__queue=queue, reviewer=user)
    rated = mine.filter(submitted_at__isnull=False).order_by("-submitted_at", "-pk").first()
    skips = ItemEvent.objects.filter(assignment__in=mine.filter(state=State.SKIPPED), verb="skip")
    skipped = skips.order_by("-pk").first()
    if skipped and (rated is None or rated.submitted_at is None or skipped.created_at > rated.submitted_at):
        return skipped.assignment_id
    if rated and rated.revealed_at is None and rated.state in {State.SUBMITTED, State.FINISHED}:
        return rated.pk
    return None
