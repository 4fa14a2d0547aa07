"""REST: review queues, for their leads and members."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts import access
from evaluation.api.endpoints import Endpoint, person
from evaluation.api.pages import Pages, PagesInOrder
from evaluation.core.roles import Action
from evaluation.models import Run
from review.api.items import card_response
from review.api.people import people_named
from review.api.requests import NothingBody, QueueBody
from review.api.serializers import CardShown, HeldShown, ItemShown, LedQueueShown, ProgressShown, QueueShown
from review.models import Assignment, ReviewQueue
from review.plans.errors import GUESS
from review.plans.several import designs, told
from review.queues.access import leads, queue_for_lead, queue_for_rating, queue_for_reading, queues_of
from review.queues.making import close, make_queue, metrics_of, reopen
from review.queues.picking import picked
from review.queues.progress import own_progress, queue_progress
from review.queues.sharing import Sharing
from review.ratings.leases import next_assignment
from review.statistics.sampling.member import DrawParams

_SETTINGS = (
    *("name", "metrics", "strategy", "size", "seed", "reviews_needed", "mode", "reveal", "reveal_threshold"),
    *("reveal_share", "adjudicate_from", "guideline", "hide_system", "lease_minutes", "deadline"),
)


class QueueListView(Endpoint):
    """The queues the caller leads or rates in."""

    serializer_class = QueueBody
    pagination_class: Any = Pages

    @extend_schema(responses=QueueShown(many=True))
    def get(self, request: Request) -> Response:
        """One page, newest first."""
        page = self.paginate_queryset(queues_of(request.user).prefetch_related("metrics__metric"))
        return self.get_paginated_response(QueueShown(page, many=True).data)

    @extend_schema(responses={201: LedQueueShown})
    def post(self, request: Request) -> Response:
        """Make a queue on a draw from each run."""
        body = self.body()
        runs = [access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, pk) for pk in body["runs"]]
        project = runs[0].project_id
        made = make_queue(
            runs,
            reviewers=people_named(body["reviewers"], project),
            sharing=_sharing(body, project),
            params=_params(runs, body),
            by=person(request),
            **{name: body[name] for name in _SETTINGS},
        )
        return Response(LedQueueShown(made).data, status=201)


class QueueView(Endpoint):
    """A queue; runs, draws and seed only for a lead who does not rate in it."""

    serializer_class = NothingBody

    @extend_schema(responses=LedQueueShown)
    def get(self, request: Request, pk: int) -> Response:
        """The queue."""
        queue = queue_for_reading(request.user, pk)
        rates = queue.members.filter(reviewer=person(request)).exists()
        shown = LedQueueShown if leads(request.user, queue) and not rates else QueueShown
        return Response(shown(queue).data)


class QueueItemsView(Endpoint):
    """For a lead all items with who holds them; for a reviewer the own ones alone."""

    serializer_class = NothingBody
    pagination_class: Any = PagesInOrder

    @extend_schema(responses=OpenApiResponse(ItemShown(many=True)))
    def get(self, request: Request, pk: int) -> Response:
        """One page."""
        queue = queue_for_reading(request.user, pk)
        if leads(request.user, queue):
            items = queue.items.select_related("answer__question").prefetch_related("assignments__reviewer")
            return self.get_paginated_response(ItemShown(self.paginate_queryset(items), many=True).data)
        return self.get_paginated_response(HeldShown(self.paginate_queryset(_held(queue, request)), many=True).data)


class NextView(Endpoint):
    """The item to rate now."""

    serializer_class = NothingBody

    @extend_schema(responses={200: CardShown, 204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Lease the next item; 204 when nothing is left for the caller at this time."""
        queue, _ = queue_for_rating(request.user, pk), self.body()
        held = next_assignment(queue, person(request))
        return Response(status=204) if held is None else card_response(held)


class ProgressView(Endpoint):
    """How far a queue is."""

    serializer_class = NothingBody

    @extend_schema(responses=ProgressShown)
    def get(self, request: Request, pk: int) -> Response:
        """``own`` for members, ``queue`` for leads."""
        queue, me = queue_for_reading(request.user, pk), person(request)
        member = queue.members.filter(reviewer=me).exists()
        shown = {
            "own": own_progress(queue, me) if member else None,
            "queue": queue_progress(queue) if leads(me, queue) else None,
        }
        return Response(ProgressShown(shown).data)


class CloseView(Endpoint):
    """Stop serving a queue."""

    serializer_class = NothingBody

    @extend_schema(responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Close."""
        queue, _ = queue_for_lead(request.user, pk), self.body()
        close(queue, by=person(request))
        return Response(status=204)


class ReopenView(Endpoint):
    """Serve a closed queue again."""

    serializer_class = NothingBody

    @extend_schema(responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Reopen."""
        queue, _ = queue_for_lead(request.user, pk), self.body()
        reopen(queue, by=person(request))
        return Response(status=204)


def _held(queue: ReviewQueue, request: Request) -> QuerySet[Assignment]:
    mine = Assignment.objects.filter(queue=queue, reviewer=person(request))
    return mine.select_related("item__answer__question")


def _params(runs: list[Run], body: dict[str, Any]) -> dict[int, DrawParams]:
    """What each run's draw is told, as on the page: what is picked of it, what earlier ratings say of its strata."""
    planned = designs(runs, metrics_of(runs, body["metrics"]), body["size"], GUESS)
    keys = picked(runs, body["answers"])
    return told(planned, fail_below=body["fail_below"], share=body["share"], keys=keys)


def _sharing(body: dict[str, Any], project_id: int) -> Sharing:
    fields = {tag: people_named(names, project_id) for tag, names in body["people_of_tags"].items()}
    answers = body["people_of_answers"].items()
    named = {int(pk): people_named(names, project_id) for pk, names in answers}
    return Sharing(body["distribution"], body["overlap_share"], body["repeat_share"], fields, named)
