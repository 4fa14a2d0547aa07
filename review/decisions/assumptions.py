"""What a lead accepts of the parts that nobody rated: that the judge is off there by no more than where it was rated.

The acceptance is an event of the audit log, which names who and when; the newest event of a run counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from evaluation.accounts import audit
from evaluation.models import AuditEvent, Run, User
from review.evidence.changes import touch_run

ACCEPTED, WITHDRAWN = "unrated_like_rated_accepted", "unrated_like_rated_withdrawn"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Who accepted the assumption, and when."""

    by: str
    at: datetime


def set_accepted(run: Run, *, accepted: bool, by: User) -> None:
    """Accept the assumption for a run, or take that back; what stands already is not recorded again."""
    if accepted != (acceptance_of(run) is not None):
        with transaction.atomic():
            touch_run(run)
            audit.record(by, ACCEPTED if accepted else WITHDRAWN, run)


def acceptance_of(run: Run) -> Acceptance | None:
    """The acceptance that stands. One query."""
    events = AuditEvent.objects.filter(
        object_type=Run._meta.label_lower, object_id=str(run.pk), verb__in=[ACCEPTED, WITHDRAWN]
    )
    newest = events.select_related("actor").order_by("-pk").first()
    if newest is None or newest.verb == WITHDRAWN:
        return None
    return Acceptance(newest.actor.get_username() if newest.actor else "", newest.created_at)
