"""What a reviewer has entered and not submitted: kept on the server, whatever happens to browser or lease."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evaluation.core.errors import Refused
from review.evidence.rating_input import Given
from review.models import Assignment, Draft
from review.ratings.leases import renew
from review.ratings.settling import RATED

DRAFT_LIMIT = 200_000  # characters of JSON


def save_draft(assignment: Assignment, payload: Mapping[str, Any]) -> None:
    """Keep what was entered so far, replacing what was kept before.

    ``payload`` is the form's own: ``{"values": {metric: {value, label, cannot_judge, comment, reason_code, parts}},
    "comment": text, "suggestion": text}``. Whoever still holds the item keeps it for the queue's time from now on.

    :raises Refused: ``already_rated``, or ``draft_too_large`` beyond 200,000 characters.
    """
    if Assignment.objects.filter(pk=assignment.pk, state__in=RATED).exists():
        raise Refused("already_rated")
    if len(json.dumps(payload, ensure_ascii=False)) > DRAFT_LIMIT:
        raise Refused("draft_too_large", limit=DRAFT_LIMIT)
    keep(assignment, payload)
    renew(assignment)


def keep(assignment: Assignment, payload: Mapping[str, Any]) -> None:
    """Write the draft without asking for the assignment's state."""
    Draft.objects.bulk_create(
        [Draft(assignment=assignment, payload=dict(payload))],
        update_conflicts=True,
        unique_fields=["assignment"],
        update_fields=["payload", "saved_at"],
    )


def payload_of(values: Mapping[str, Given], comment: str = "", suggestion: str = "") -> dict[str, Any]:
    """A draft that fills the form with these values."""
    held = {metric: given.as_json() for metric, given in values.items()}
    return {"values": held, "comment": comment, "suggestion": suggestion}
