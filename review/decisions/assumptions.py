"""Acceptance of the assumption that the judge's error on unrated parts is no larger than on rated ones.

It is an event of the audit log; the newest event of a run counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from evaluation.accounts import audit
from evaluation.models import AuditEvent, Run, User
from review.evidence.invalidation import invalidate_run_figures

ACCEPTED, WITHDRAWN = "unrated_like_rated_accepted", "unrated_like_rated_withdrawn"


@dataclass(frozen=True, slots=True)
class Acceptance:
    by: str
    at: datetime


def set_acceptance(run: Run, *, accepted: bool, by: User) -> None:
    """Accept the assumption for a run, or withdraw the acceptance. Repeating it records nothing."""
    if accepted != (current_acceptance(run) is not None):
        with transaction.atomic():
            invalidate_run_figures(run)
            audit.record(by, ACCEPTED if accepted else WITHDRAWN, run)


def current_acceptance(run: Run) -> Acceptance | None:
    """Return the current acceptance. One query."""
    events = AuditEvent.objects.filter(
        object_type=Run._meta.label_lower, object_id=str(run.pk), verb__in=[ACCEPTED, WITHDRAWN]
    )
    newest = events.select_related("actor").order_by("-pk").first()
    if newest is None or newest.verb == WITHDRAWN:
        return None
    return Acceptance(newest.actor.get_username() if newest.actor else "", newest.created_at)
