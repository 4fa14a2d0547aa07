"""REST: draws and review queues, for leads and members: making one, taking the next item, what a lead does with one
under way, and how far its reviewers agree."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import (
    CharField,
    ChoiceField,
    DateTimeField,
    FloatField,
    IntegerField,
    JSONField,
    ListField,
    Serializer,
)

from evaluation.accounts import access
from evaluation.core.errors import UnknownName
from evaluation.core.roles import Action
from evaluation.judges.shipping import own_names
from evaluation.models import RoleGrant, Run, User
from evaluation.rest.endpoints import StrictSerializer, ViewSet, part, person, verb, written_by
from evaluation.rest.fields import TOO_OFTEN, limited, row_id
from evaluation.rest.requests import Pages, PagesInOrder
from evaluation.runs.exports import download, take_export, take_figures
from review.agreement.variation import consistency
from review.evidence.answers import expose_queue
from review.models import Assignment, Draw, ReviewItem, ReviewQueue
from review.models.queue_spec import ASKED, MOST_REVIEWS, QueueSpec
from review.queues.access import (
    draw_for_lead,
    draws_of,
    leads,
    queue_for_lead,
    queue_for_rating,
    queue_for_reading,
    queues_of,
)
from review.queues.criteria import criteria_of, metrics_of
from review.queues.design import GUESS, designs, told
from review.queues.directing import Moved, extend_all, name_people, reassign, release_all, set_deadline
from review.queues.draws import make_draw
from review.queues.making import close, make_queue, reopen
from review.queues.progress import own_progress, paces, queue_progress
from review.queues.serializers import (
    DrawBody,
    DrawShown,
    LedQueueShown,
    ProgressShown,
    QueueBody,
    QueueShown,
    design_from,
)
from review.queues.sharing import Sharing, picked
from review.ratings.api import card_of
from review.ratings.card import Card
from review.ratings.leases import next_assignment
from review.ratings.serializers import CardShown, HeldShown, ItemShown
from review.reports.item_export import ITEM_EXPORTS, export_items
from review.statistics.sampling.member import DrawParams


def people_named(names: Sequence[str], project_id: int) -> list[User]:
    """Members of the project by user name.

    :raises UnknownName: naming the near ones.
    """
    granted = RoleGrant.objects.filter(project=project_id).values("user")
    known = {user.get_username(): user for user in User.objects.filter(pk__in=granted, is_active=True)}
    if unknown := [name for name in names if name not in known]:
        raise UnknownName("reviewer", unknown[0], list(known))
    return [known[name] for name in names]


class DrawViewSet(ViewSet):
    """The draws of the projects the caller leads."""

    pagination_class = Pages

    @written_by(DrawShown, paged=True)
    def list(self, request: Request) -> QuerySet[Draw]:
        """One page, newest first."""
        return draws_of(request.user)

    @written_by(DrawShown, status=201, body=DrawBody)
    def create(self, request: Request) -> Draw:
        """Draw a sample without a queue."""
        body = self.body()
        run = access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, body["run"])
        metric = metrics_of([run], own_names([run], [body["metric"]]))[0] if body["metric"] else None
        params = design_from(body)
        return make_draw(
            run, body["strategy"], body["size"], body["seed"], person(request), metric=metric, params=params
        )

    @written_by(DrawShown)
    def retrieve(self, request: Request, pk: int) -> Draw:
        """The draw with its strata."""
        return draw_for_lead(request.user, pk)


def _items(**more: Any) -> ListField:
    return ListField(child=row_id(), max_length=5_000, **more)


class ReassignBody(StrictSerializer):
    """``giver`` and ``taker`` are user names; ``items`` are ids, left out for all the giver has not rated."""

    giver = CharField(max_length=150)
    taker = CharField(max_length=150)
    items = _items(allow_null=True, default=None)


class ReviewerBody(StrictSerializer):
    """A user name."""

    reviewer = CharField(max_length=150)


class NamesBody(StrictSerializer):
    """Items by id, and the user names of exactly those who are to rate them."""

    items = _items(allow_empty=False)
    reviewers = ListField(child=CharField(max_length=150), min_length=1, max_length=MOST_REVIEWS)


class DeadlineBody(StrictSerializer):
    """A moment to come, or null for none."""

    deadline = DateTimeField(allow_null=True)


class ExportQuery(StrictSerializer):
    """The format of the file."""

    format = ChoiceField(choices=ITEM_EXPORTS.names, default="jsonl")


class CountShown(Serializer[Moved]):
    """How many items a step touched; ``kept`` did not change hands."""

    items = IntegerField(source="moved")
    kept = IntegerField(default=0)


class ReviewerFiguresShown(Serializer[Any]):
    """A reviewer on a metric: agreement with the others and with themselves (the keys of ``agreement``; ``bias`` with
    the others is leniency), null without an answer that tells; and the pace."""

    reviewer = CharField()
    metric = CharField(source="figures.metric.name")
    peers = JSONField(source="figures.peers.to_dict", allow_null=True)
    oneself = JSONField(source="figures.oneself.to_dict", allow_null=True)
    median_seconds = FloatField(source="pace.median_seconds", allow_null=True)
    under_three_seconds = IntegerField(source="quick")


def member(queue: ReviewQueue, name: str) -> User:
    """A reviewer of the queue by user name.

    :raises UnknownName: naming the near ones.
    """
    known = {row.reviewer.get_username(): row.reviewer for row in queue.members.select_related("reviewer")}
    if name not in known:
        raise UnknownName("reviewer", name, list(known))
    return known[name]


class QueueViewSet(ViewSet):
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
        body["metrics"] = own_names(runs, body["metrics"])
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

    @written_by(LedQueueShown, QueueShown)
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

    @verb(queue_for_lead, CountShown, body=ReassignBody)
    def reassign(self, queue: ReviewQueue, body: dict[str, Any]) -> Moved:
        """Reassign."""
        giver, taker = member(queue, body["giver"]), member(queue, body["taker"])
        return reassign(queue, giver, taker, by=person(self.request), items=body["items"])

    @verb(queue_for_lead, CountShown, body=ReviewerBody)
    def release(self, queue: ReviewQueue, body: dict[str, Any]) -> Moved:
        """Release."""
        return Moved(release_all(queue, member(queue, body["reviewer"]), by=person(self.request)), kept=0)

    @verb(queue_for_lead, CountShown, body=ReviewerBody)
    def extend(self, queue: ReviewQueue, body: dict[str, Any]) -> Moved:
        """Extend."""
        return Moved(extend_all(queue, member(queue, body["reviewer"]), by=person(self.request)), kept=0)

    @verb(queue_for_lead, CountShown, body=NamesBody)
    def name_reviewers(self, queue: ReviewQueue, body: dict[str, Any]) -> Moved:
        """Name them."""
        people = [member(queue, name) for name in body["reviewers"]]
        return Moved(name_people(queue, body["items"], people, by=person(self.request)), kept=0)

    @verb(queue_for_lead, body=DeadlineBody)
    def deadline(self, queue: ReviewQueue, body: dict[str, Any]) -> None:
        """Set it."""
        set_deadline(queue, body["deadline"], by=person(self.request))

    @verb(queue_for_lead)
    def close(self, queue: ReviewQueue) -> None:
        """Close."""
        close(queue, by=person(self.request))

    @verb(queue_for_lead)
    def reopen(self, queue: ReviewQueue) -> None:
        """Reopen."""
        reopen(queue, by=person(self.request))

    @limited(ExportQuery, {(200, kind): OpenApiTypes.ANY for kind in ITEM_EXPORTS.media_types})
    def export(self, request: Request, pk: int) -> StreamingHttpResponse:
        """One row for each item; who rates in an open queue of these answers is recorded as having seen the judge."""
        queue, me = queue_for_reading(request.user, pk), person(request)
        asked, lead = self.asked(), leads(me, queue)
        take_export(me)
        made = export_items(queue, asked["format"], None if lead else me)
        if lead:
            expose_queue(me, queue)
        return download(made)

    @part(ReviewerFiguresShown, many=True, others={429: TOO_OFTEN})
    def agreement(self, request: Request, pk: int) -> Sequence[dict[str, Any]]:
        """One entry for each reviewer and metric with anything to compare."""
        queue = queue_for_lead(request.user, pk)
        take_figures(person(request))
        names = dict(queue.members.values_list("reviewer", "reviewer__username"))
        speed = paces(queue)
        return [
            {
                "figures": one,
                "reviewer": names.get(one.reviewer_id, ""),
                "pace": (pace := speed.get(one.reviewer_id)),
                "quick": pace.quick if pace else 0,
            }
            for one in consistency(queue)
        ]


def _params(runs: list[Run], spec: QueueSpec, body: dict[str, Any]) -> dict[int, DrawParams]:
    """What each run's draw is told, as on the page: what is picked of it, what earlier ratings say of its strata."""
    planned = designs(runs, criteria_of(runs, spec, body["metrics"]), spec.size, GUESS)
    return told(planned, spec, picked(runs, body["answers"]))


def _sharing(body: dict[str, Any], project_id: int) -> Sharing:
    fields = {tag: people_named(names, project_id) for tag, names in body["people_of_tags"].items()}
    answers = body["people_of_answers"].items()
    named = {int(pk): people_named(names, project_id) for pk, names in answers}
    return Sharing(fields, named)
