"""Putting an item down without a rating: given back, skipped, flagged, escalated."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from evaluation.core.errors import Refused, UnknownName
from review.evidence.rating_input import FlagKind, check_comment
from review.models import Assignment, ItemEvent, ReviewItem
from review.ratings.settling import RATED, locked, settle

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
