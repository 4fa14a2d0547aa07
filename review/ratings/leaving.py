"""Leaving an item without a rating: the draft is kept, the item is given back, skipped, flagged or escalated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from evaluation.core.errors import Refused, UnknownName
from review.evidence.rating_input import FlagKind, Given, check_comment
from review.models import Assignment, Draft, ItemEvent, ReviewItem
from review.ratings.leases import renew
from review.ratings.settling import RATED, locked, settle

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


State = Assignment.State


def release(assignment: Assignment) -> None:
    """Give the item back; the draft stays, and it may come back to the same person after all others.

    :raises Refused: ``not_held`` when it was rated or passed on.
    """
    with transaction.atomic():
        locked(assignment.item_id)
        _leave(assignment, State.EXPIRED, from_states=[State.LEASED])
        _record(assignment, "release")


def skip(assignment: Assignment, comment: str = "") -> None:
    """Pass the item on to somebody else; it never comes back to this person. Three skips by different people make it
    a lead's matter.

    :raises Refused: ``not_held`` or ``comment_too_long``.
    """
    check_comment(comment)
    with transaction.atomic():
        item = locked(assignment.item_id)
        _leave(assignment, State.SKIPPED)
        _record(assignment, "skip", comment=comment)
        settle(item)


def flag(assignment: Assignment, kind: str, comment: str = "") -> None:
    """Say that something is wrong with the item itself. Before a rating it passes the item on like a skip; after one
    the rating stands beside the flag.

    :raises Refused: ``not_held`` when it was passed on before, or ``comment_too_long``.
    :raises UnknownName: for a kind that is not on the list.
    """
    check_comment(comment)
    if kind not in set(FlagKind):
        raise UnknownName("kind of flag", kind, [known.value for known in FlagKind])
    with transaction.atomic():
        item = locked(assignment.item_id)
        if not _is_rated(assignment):
            _leave(assignment, State.FLAGGED)
        _record(assignment, "flag", kind=kind, comment=comment)
        settle(item)


def escalate(assignment: Assignment, comment: str = "") -> None:
    """Hand the item to a lead: it is in dispute until they decide, whatever it was before.

    :raises Refused: ``not_held`` when it was passed on before, or ``comment_too_long``.
    """
    check_comment(comment)
    with transaction.atomic():
        locked(assignment.item_id)
        if not _is_rated(assignment):
            _leave(assignment, State.FLAGGED)
        _record(assignment, "escalate", comment=comment)
        movable = [ReviewItem.State.OPEN, ReviewItem.State.DONE]
        ReviewItem.objects.filter(pk=assignment.item_id, state__in=movable).update(state=ReviewItem.State.DISPUTED)


def _is_rated(assignment: Assignment) -> bool:
    return Assignment.objects.filter(pk=assignment.pk, state__in=RATED).exists()


def _leave(assignment: Assignment, into: State, from_states: Sequence[State] = (State.LEASED, State.EXPIRED)) -> None:
    """Leave an item one holds, or whose lease one lost; a lost one needs no slot to be passed on."""
    if not Assignment.objects.filter(pk=assignment.pk, state__in=from_states).update(state=into):
        raise Refused("not_held")
    assignment.state = into


def _record(assignment: Assignment, verb: str, *, kind: str = "", comment: str = "") -> None:
    ItemEvent.objects.create(assignment=assignment, verb=verb, kind=kind, comment=comment)
