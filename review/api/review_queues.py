"""REST: review queues, for their leads and members: what is there, making one, and taking the next item."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts import access
from evaluation.api.endpoints import part, person, verb, written_by
from evaluation.api.pages import Pages, PagesInOrder
from evaluation.core.roles import Action
from evaluation.models import Run
from review.api.card_serializers import CardShown
from review.api.items import card_of
from review.api.leading import LeadingViewSet
from review.api.people import people_named
from review.api.requests import QueueBody
from review.api.serializers import HeldShown, ItemShown, LedQueueShown, ProgressShown, QueueShown
from review.models import Assignment, ReviewItem, ReviewQueue
from review.models.queue_spec import ASKED, QueueSpec
from review.plans.design import GUESS, designs, told
from review.queues.access import leads, queue_for_rating, queue_for_reading, queues_of
from review.queues.making import make_queue, metrics_of
from review.queues.progress import own_progress, queue_progress
from review.queues.sharing import Sharing, picked
from review.ratings.card import Card
from review.ratings.leases import next_assignment
from review.statistics.sampling.member import DrawParams


class QueueViewSet(LeadingViewSet):
    """The queues the caller leads or rates in."""

    pagination_class = Pages

    def get_queryset(self) -> QuerySet[ReviewQueue]:
        """What the caller may see."""
        return queues_of(self.request.user).prefetch_related("metrics__metric")

    @written_by(QueueShown, paged=True)
    def list(self, request: Request) -> QuerySet[ReviewQueue]:
        """One page, newest first."""
        return self.get_queryset()

    @written_by(LedQueueShown, status=201, body=QueueBody)
    def create(self, request: Request) -> ReviewQueue:
        """Make a queue on a draw from each run."""
        body = self.body()
        runs = [access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, pk) for pk in body["runs"]]
        project, spec = runs[0].project_id, QueueSpec(**{one.name: body[one.name] for one in ASKED})
        return make_queue(
            runs,
            spec,
            metrics=body["metrics"],
            reviewers=people_named(body["reviewers"], project),
            sharing=_sharing(body, project),
            params=_params(runs, spec, body),
            by=person(request),
        )

    @written_by(LedQueueShown)
    def retrieve(self, request: Request, pk: int) -> ReviewQueue | Response:
        """The queue."""
        queue = queue_for_reading(request.user, pk)
        rates = queue.members.filter(reviewer=person(request)).exists()
        return queue if leads(request.user, queue) and not rates else Response(QueueShown(queue).data)

    @part(ItemShown, HeldShown, pages=PagesInOrder)
    def items(self, request: Request, pk: int) -> QuerySet[ReviewItem] | Response:
        """One page."""
        queue = queue_for_reading(request.user, pk)
        if leads(request.user, queue):
            return queue.items.select_related("answer__question").prefetch_related("assignments__reviewer")
        mine = Assignment.objects.filter(queue=queue, reviewer=person(request))
        return self.page(mine.select_related("item__answer__question"), HeldShown)

    @verb(queue_for_rating, CardShown, others={204: None})
    def next(self, queue: ReviewQueue) -> Card | None:
        """Lease the next item; 204 when nothing is left for the caller at this time."""
        held = next_assignment(queue, person(self.request))
        return None if held is None else card_of(held)

    @part(ProgressShown)
    def progress(self, request: Request, pk: int) -> dict[str, Any]:
        """``own`` for members, ``queue`` for leads."""
        queue, me = queue_for_reading(request.user, pk), person(request)
        member = queue.members.filter(reviewer=me).exists()
        return {
            "own": own_progress(queue, me) if member else None,
            "queue": queue_progress(queue) if leads(me, queue) else None,
        }


def _params(runs: list[Run], spec: QueueSpec, body: dict[str, Any]) -> dict[int, DrawParams]:
    """What each run's draw is told, as on the page: what is picked of it, what earlier ratings say of its strata."""
    planned = designs(runs, metrics_of(runs, body["metrics"]), spec.size, GUESS)
    return told(planned, spec, picked(runs, body["answers"]))


def _sharing(body: dict[str, Any], project_id: int) -> Sharing:
    fields = {tag: people_named(names, project_id) for tag, names in body["people_of_tags"].items()}
    answers = body["people_of_answers"].items()
    named = {int(pk): people_named(names, project_id) for pk, names in answers}
    return Sharing(fields, named)
