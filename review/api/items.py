"""REST: items in a reviewer's hands. ``{id}`` is the assignment's; anybody else's does not exist."""

from __future__ import annotations

from typing import Any

from django.utils.translation import get_language
from rest_framework.request import Request

from evaluation.api.endpoints import ViewSet, person, verb, written_by
from review.api.card_serializers import CardShown, FinalisedShown, JudgeSaidShown, SubmittedShown
from review.api.requests import CommentBody, DraftBody, FinaliseBody, FlagBody, SubmitBody, changes_from, given_from
from review.models import Assignment
from review.queues.access import own_assignment
from review.ratings.card import Card, card
from review.ratings.leases import extend
from review.ratings.reveals import Finalised, JudgeSaid, finalise, reveal
from review.ratings.submitting import Submitted, escalate, flag, payload_of, release, save_draft, skip, submit, undo


def card_of(assignment: Assignment) -> Card:
    """The card in the caller's language."""
    return card(assignment, get_language() or "en")


class ItemViewSet(ViewSet):
    """An item: question, answer, contexts, reference and rubric; the judge only where it is shown."""

    @written_by(CardShown)
    def retrieve(self, request: Request, pk: int) -> Card:
        """The card."""
        return card_of(own_assignment(request.user, pk, shown=True))

    @verb(own_assignment, body=DraftBody)
    def draft(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Replace the draft."""
        save_draft(assignment, payload_of(given_from(body["values"]), body["comment"], body["suggestion"]))

    @verb(own_assignment, SubmittedShown, body=SubmitBody)
    def submit(self, assignment: Assignment, body: dict[str, Any]) -> Submitted:
        """Store the first ratings."""
        return submit(assignment, given_from(body.pop("values")), by=person(self.request), **body)

    @verb(own_assignment, JudgeSaidShown, many=True)
    def reveal(self, assignment: Assignment) -> list[JudgeSaid]:
        """What the judge said about each metric."""
        return reveal(assignment)

    @verb(own_assignment, FinalisedShown, body=FinaliseBody)
    def finalise(self, assignment: Assignment, body: dict[str, Any]) -> Finalised:
        """Store the final ratings."""
        changes = changes_from(body["changes"])
        return finalise(assignment, changes, by=person(self.request), active_ms=body["active_ms"])

    @verb(own_assignment, CardShown)
    def undo(self, assignment: Assignment) -> Card:
        """The item again, with what had been entered."""
        return card_of(undo(assignment, by=person(self.request)))

    @verb(own_assignment, body=CommentBody)
    def skip(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Skip."""
        skip(assignment, body["comment"])

    @verb(own_assignment, body=FlagBody)
    def flag(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Flag."""
        flag(assignment, body["kind"], body["comment"])

    @verb(own_assignment, body=CommentBody)
    def escalate(self, assignment: Assignment, body: dict[str, Any]) -> None:
        """Escalate."""
        escalate(assignment, body["comment"])

    @verb(own_assignment)
    def release(self, assignment: Assignment) -> None:
        """Release."""
        release(assignment)

    @verb(own_assignment, CardShown)
    def extend(self, assignment: Assignment) -> Card:
        """Extend."""
        return card_of(extend(assignment))
