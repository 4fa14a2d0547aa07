"""REST: items in a reviewer's hands. ``{id}`` is the assignment's; anybody else's does not exist."""

from __future__ import annotations

from django.utils.translation import get_language
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.api.endpoints import Endpoint, person
from review.api.requests import (
    CommentBody,
    DraftBody,
    FinaliseBody,
    FlagBody,
    NothingBody,
    SubmitBody,
    changes_from,
    given_from,
)
from review.api.serializers import CardShown, FinalisedShown, JudgeSaidShown, SubmittedShown
from review.models import Assignment
from review.queues.access import own_assignment
from review.ratings.card import card
from review.ratings.drafts import payload_of, save_draft
from review.ratings.leases import extend
from review.ratings.leaving import escalate, flag, release, skip
from review.ratings.reveals import finalise, reveal
from review.ratings.submitting import submit, undo

# One for all requests: making a serializer copies every field below it.
CARD, SUBMITTED = CardShown(), SubmittedShown()


def card_response(assignment: Assignment, status: int = 200) -> Response:
    """The card in the caller's language."""
    return Response(CARD.to_representation(card(assignment, get_language() or "en")), status=status)


class ItemView(Endpoint):
    """An item: question, answer, contexts, reference and rubric; the judge only where it is shown."""

    serializer_class = NothingBody

    @extend_schema(responses=CardShown)
    def get(self, request: Request, pk: int) -> Response:
        """The card."""
        return card_response(own_assignment(request.user, pk, shown=True))


class DraftView(Endpoint):
    """Keep what was entered so far."""

    serializer_class = DraftBody

    @extend_schema(responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Replace the draft."""
        assignment, body = own_assignment(request.user, pk), self.body()
        save_draft(assignment, payload_of(given_from(body["values"]), body["comment"], body["suggestion"]))
        return Response(status=204)


class SubmitView(Endpoint):
    """Rate all metrics at once; the same idempotency key twice is one decision."""

    serializer_class = SubmitBody

    @extend_schema(responses=SubmittedShown)
    def post(self, request: Request, pk: int) -> Response:
        """Store the first ratings."""
        assignment, body = own_assignment(request.user, pk), self.body()
        done = submit(
            assignment,
            given_from(body["values"]),
            idempotency_key=body["idempotency_key"],
            by=person(request),
            active_ms=body["active_ms"],
            comment=body["comment"],
            suggestion=body["suggestion"],
        )
        return Response(SUBMITTED.to_representation(done))


class RevealView(Endpoint):
    """Show the judge after the rating, where the queue's setting says so."""

    serializer_class = NothingBody

    @extend_schema(responses=JudgeSaidShown(many=True))
    def post(self, request: Request, pk: int) -> Response:
        """What the judge said about each metric."""
        assignment, _ = own_assignment(request.user, pk), self.body()
        return Response(JudgeSaidShown(reveal(assignment), many=True).data)


class FinaliseView(Endpoint):
    """Keep or change the rating after the judge was shown."""

    serializer_class = FinaliseBody

    @extend_schema(responses=FinalisedShown)
    def post(self, request: Request, pk: int) -> Response:
        """Store the final ratings."""
        assignment, body = own_assignment(request.user, pk), self.body()
        changes = changes_from(body["changes"])
        done = finalise(assignment, changes, by=person(request), active_ms=body["active_ms"])
        return Response(FinalisedShown(done).data)


class UndoView(Endpoint):
    """Take back the last rating, or a skip."""

    serializer_class = NothingBody

    @extend_schema(responses=CardShown)
    def post(self, request: Request, pk: int) -> Response:
        """The item again, with what had been entered."""
        assignment, _ = own_assignment(request.user, pk), self.body()
        return card_response(undo(assignment, by=person(request)))


class SkipView(Endpoint):
    """Pass the item on to somebody else."""

    serializer_class = CommentBody

    @extend_schema(responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Skip."""
        assignment, body = own_assignment(request.user, pk), self.body()
        skip(assignment, body["comment"])
        return Response(status=204)


class FlagView(Endpoint):
    """Say that something is wrong with the item itself."""

    serializer_class = FlagBody

    @extend_schema(responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Flag."""
        assignment, body = own_assignment(request.user, pk), self.body()
        flag(assignment, body["kind"], body["comment"])
        return Response(status=204)


class EscalateView(Endpoint):
    """Hand the item to a lead."""

    serializer_class = CommentBody

    @extend_schema(responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Escalate."""
        assignment, body = own_assignment(request.user, pk), self.body()
        escalate(assignment, body["comment"])
        return Response(status=204)


class ReleaseView(Endpoint):
    """Give the item back; the draft stays."""

    serializer_class = NothingBody

    @extend_schema(responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Release."""
        assignment, _ = own_assignment(request.user, pk), self.body()
        release(assignment)
        return Response(status=204)


class ExtendView(Endpoint):
    """Prolong the lease from now."""

    serializer_class = NothingBody

    @extend_schema(responses=CardShown)
    def post(self, request: Request, pk: int) -> Response:
        """Extend."""
        assignment, _ = own_assignment(request.user, pk), self.body()
        return card_response(extend(assignment))
