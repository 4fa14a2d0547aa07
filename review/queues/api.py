"""REST: draws and review queues, for leads and members."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
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
from evaluation.judges.shipped import metric_names
from evaluation.models import RoleGrant, Run, User
from evaluation.rest.endpoints import StrictSerializer, ViewSet, detail_action, detail_view, request_user, responds_with
from evaluation.rest.fields import RATE_LIMIT_RESPONSE, id_field, rate_limited_view
from evaluation.rest.requests import Pages, PagesOldestFirst
from evaluation.rest.typed import file_responses
from evaluation.runs.exports import count_export, count_figures, download_response
from review.agreement.variation import reviewer_consistency
from review.evidence.answers import record_queue_exposure
from review.models import Assignment, Draw, ReviewItem, ReviewQueue
from review.models.queue_spec import CONFIGURABLE_SETTINGS, MAX_REVIEWS, QueueSpec
from review.queues.access import (
    draw_for_lead,
    leads,
    queue_for_lead,
    queue_for_rating,
    queue_for_reading,
    visible_draws,
    visible_queues,
)
from review.queues.creation import close_queue, make_queue, reopen_queue
from review.queues.criteria import named_metrics, select_criteria
from review.queues.design import DEFAULT_GUESS, design_samples, draw_params_by_run
from review.queues.distribution import NamedReviewers, pick_answers
from review.queues.draws import make_draw
from review.queues.progress import own_progress, queue_progress, reviewer_paces
from review.queues.reassignment import MoveCounts, extend_all, reassign, release_all, set_deadline, set_item_reviewers
from review.queues.rounds import make_next_round
from review.queues.serializers import (
    DrawBody,
    DrawShown,
    LedQueueShown,
    ProgressShown,
    QueueBody,
    QueueShown,
    draw_params_from,
)
from review.ratings.api import card_in_language
from review.ratings.card import Card
from review.ratings.leases import next_assignment
from review.ratings.serializers import CardShown, ItemShown, OwnItemShown
from review.reports.item_export import ITEM_EXPORTS, export_items
from review.statistics.sampling.member import DrawParams


def people_named(names: Sequence[str], project_id: int) -> list[User]:
    """Members of the project by user name.

    :raises UnknownName: with similar names."""
    granted_ids = RoleGrant.objects.filter(project=project_id).values("user")
    users_by_name = {user.get_username(): user for user in User.objects.filter(pk__in=granted_ids, is_active=True)}
    if unknown_names := [name for name in names if name not in users_by_name]:
        raise UnknownName("reviewer", unknown_names[0], list(users_by_name))
    return [users_by_name[name] for name in names]


LABEL_STUDIO_TASKS = {"type": "array", "items": {"type": "object", "additionalProperties": {}}}


class DrawViewSet(ViewSet):
    """Draws of the projects that the caller leads."""

    pagination_class = Pages

    @responds_with(DrawShown, paged=True)
    def list(self, request: Request) -> QuerySet[Draw]:
        """One page, newest first."""
        return visible_draws(request.user)

    @responds_with(DrawShown, status=201, body=DrawBody)
    def create(self, request: Request) -> Draw:
        """Draw a sample without a queue."""
        body = self.body()
        run = access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, body["run"])
        metric = named_metrics([run], metric_names([run], [body["metric"]]))[0] if body["metric"] else None
        params = draw_params_from(body)
        return make_draw(
            run, body["strategy"], body["size"], body["seed"], request_user(request), metric=metric, params=params
        )

    @responds_with(DrawShown)
    def retrieve(self, request: Request, pk: int) -> Draw:
        """The draw with its strata."""
        return draw_for_lead(request.user, pk)


def _item_ids_field(**options: Any) -> ListField:
    return ListField(child=id_field(), max_length=5_000, **options)


class ReassignBody(StrictSerializer):
    """``giver`` and ``taker`` are user names. ``items`` are ids; without them, all items that the giver has not
    rated."""

    giver = CharField(max_length=150)
    taker = CharField(max_length=150)
    items = _item_ids_field(allow_null=True, default=None)


class ReviewerBody(StrictSerializer):
    """A user name."""

    reviewer = CharField(max_length=150)


class NamesBody(StrictSerializer):
    """Items by id, and the user names of the people who shall rate them."""

    items = _item_ids_field(allow_empty=False)
    reviewers = ListField(child=CharField(max_length=150), min_length=1, max_length=MAX_REVIEWS)


class DeadlineBody(StrictSerializer):
    """A time in the future, or null for none."""

    deadline = DateTimeField(allow_null=True)


class ExportQuery(StrictSerializer):
    """The format of the file."""

    format = ChoiceField(choices=ITEM_EXPORTS.names, default="jsonl")


class CountShown(Serializer[MoveCounts]):
    """Number of items that the step changed; ``kept`` counts those that stayed with their reviewer."""

    items = IntegerField(source="moved")
    kept = IntegerField(default=0)


class ReviewerFiguresShown(Serializer[Any]):
    """A reviewer on a metric: agreement with the others and with themselves (the keys of ``agreement``; ``bias`` with
    the others is leniency), null where nothing can be compared; and the pace."""

    reviewer = CharField()
    metric = CharField(source="figures.metric.name")
    peers = JSONField(source="figures.peers.to_dict", allow_null=True)
    oneself = JSONField(source="figures.oneself.to_dict", allow_null=True)
    median_seconds = FloatField(source="pace.median_seconds", allow_null=True)
    under_three_seconds = IntegerField(source="quick")


def queue_member(queue: ReviewQueue, name: str) -> User:
    """A reviewer of the queue by user name.

    :raises UnknownName: with similar names."""
    users_by_name = {row.reviewer.get_username(): row.reviewer for row in queue.members.select_related("reviewer")}
    if name not in users_by_name:
        raise UnknownName("reviewer", name, list(users_by_name))
    return users_by_name[name]


class QueueViewSet(ViewSet):
    """Queues that the caller leads or rates in."""

    pagination_class = Pages

    def get_queryset(self) -> QuerySet[ReviewQueue]:
        """Queues visible to the caller."""
        return visible_queues(self.request.user).prefetch_related("metrics__metric")

    @responds_with(QueueShown, paged=True)
    def list(self, request: Request) -> QuerySet[ReviewQueue]:
        """One page, newest first."""
        return self.get_queryset()

    @responds_with(LedQueueShown, status=201, body=QueueBody)
    def create(self, request: Request) -> ReviewQueue:
        """Create a queue on a draw from each run."""
        body = self.body()
        runs = [access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, pk) for pk in body["runs"]]
        body["metrics"] = metric_names(runs, body["metrics"])
        project, spec = (
            runs[0].project_id,
            QueueSpec(**{queue_setting.name: body[queue_setting.name] for queue_setting in CONFIGURABLE_SETTINGS}),
        )
        return make_queue(
            runs,
            spec,
            metrics=body["metrics"],
            reviewers=people_named(body["reviewers"], project),
            named_reviewers=_named_reviewers(body, project),
            params=_draw_params(runs, spec, body),
            by=request_user(request),
        )

    @responds_with(LedQueueShown, QueueShown)
    def retrieve(self, request: Request, pk: int) -> ReviewQueue | Response:
        """The queue."""
        queue = queue_for_reading(request.user, pk)
        rates = queue.members.filter(reviewer=request_user(request)).exists()
        return queue if leads(request.user, queue) and not rates else Response(QueueShown(queue).data)

    @detail_view(ItemShown, OwnItemShown, pages=PagesOldestFirst)
    def items(self, request: Request, pk: int) -> QuerySet[ReviewItem] | Response:
        """One page of items: all for leads, own ones for members."""
        queue = queue_for_reading(request.user, pk)
        if leads(request.user, queue):
            return queue.items.select_related("answer__question").prefetch_related("assignments__reviewer")
        own_assignments = Assignment.objects.filter(queue=queue, reviewer=request_user(request))
        return self.page(own_assignments.select_related("item__answer__question"), OwnItemShown)

    @detail_action(queue_for_rating, CardShown, other_responses={204: None})
    def next(self, queue: ReviewQueue) -> Card | None:
        """Lease the next item; 204 if there is none for the caller at this time."""
        assignment = next_assignment(queue, request_user(self.request))
        return None if assignment is None else card_in_language(assignment)

    @detail_view(ProgressShown)
    def progress(self, request: Request, pk: int) -> dict[str, Any]:
        """``own`` for members, ``queue`` for leads."""
        queue, user = queue_for_reading(request.user, pk), request_user(request)
        is_member = queue.members.filter(reviewer=user).exists()
        return {
            "own": own_progress(queue, user) if is_member else None,
            "queue": queue_progress(queue) if leads(user, queue) else None,
        }

    @detail_action(queue_for_lead, CountShown, body=ReassignBody)
    def reassign(self, queue: ReviewQueue, body: dict[str, Any]) -> MoveCounts:
        """Reassign unrated items to another reviewer."""
        giver, taker = queue_member(queue, body["giver"]), queue_member(queue, body["taker"])
        return reassign(queue, giver, taker, by=request_user(self.request), items=body["items"])

    @detail_action(queue_for_lead, CountShown, body=ReviewerBody)
    def release(self, queue: ReviewQueue, body: dict[str, Any]) -> MoveCounts:
        """Release all items that a reviewer holds."""
        return MoveCounts(
            release_all(queue, queue_member(queue, body["reviewer"]), by=request_user(self.request)), kept=0
        )

    @detail_action(queue_for_lead, CountShown, body=ReviewerBody)
    def extend(self, queue: ReviewQueue, body: dict[str, Any]) -> MoveCounts:
        """Extend all leases of a reviewer."""
        return MoveCounts(
            extend_all(queue, queue_member(queue, body["reviewer"]), by=request_user(self.request)), kept=0
        )

    @detail_action(queue_for_lead, CountShown, body=NamesBody)
    def name_reviewers(self, queue: ReviewQueue, body: dict[str, Any]) -> MoveCounts:
        """Set the reviewers of items."""
        people = [queue_member(queue, name) for name in body["reviewers"]]
        return MoveCounts(set_item_reviewers(queue, body["items"], people, by=request_user(self.request)), kept=0)

    @detail_action(queue_for_lead, body=DeadlineBody)
    def deadline(self, queue: ReviewQueue, body: dict[str, Any]) -> None:
        """Set the deadline."""
        set_deadline(queue, body["deadline"], by=request_user(self.request))

    @detail_action(queue_for_lead, LedQueueShown, status=201)
    def next_round(self, queue: ReviewQueue) -> ReviewQueue:
        """Create the queue of the next planned round, with the settings and people of the latest one."""
        return make_next_round(queue, by=request_user(self.request))

    @detail_action(queue_for_lead)
    def close(self, queue: ReviewQueue) -> None:
        """Close the queue."""
        close_queue(queue, by=request_user(self.request))

    @detail_action(queue_for_lead)
    def reopen(self, queue: ReviewQueue) -> None:
        """Reopen the queue."""
        reopen_queue(queue, by=request_user(self.request))

    @rate_limited_view(ExportQuery, file_responses(ITEM_EXPORTS, json=LABEL_STUDIO_TASKS))
    def export(self, request: Request, pk: int) -> StreamingHttpResponse:
        """Export one row per item. A caller who rates these answers in an open queue is recorded as having seen the
        judge."""
        queue, user = queue_for_reading(request.user, pk), request_user(request)
        query, is_lead = self.validated_query(), leads(user, queue)
        count_export(user)
        export_file = export_items(queue, query["format"], None if is_lead else user)
        if is_lead:
            record_queue_exposure(user, queue)
        return download_response(export_file)

    @detail_view(ReviewerFiguresShown, many=True, other_responses={429: RATE_LIMIT_RESPONSE})
    def agreement(self, request: Request, pk: int) -> Sequence[dict[str, Any]]:
        """One entry for each reviewer and metric with values to compare."""
        queue = queue_for_lead(request.user, pk)
        count_figures(request_user(request))
        names = dict(queue.members.values_list("reviewer", "reviewer__username"))
        pace_by_reviewer = reviewer_paces(queue)
        return [
            {
                "figures": reviewer_figures,
                "reviewer": names.get(reviewer_figures.reviewer_id, ""),
                "pace": (pace := pace_by_reviewer.get(reviewer_figures.reviewer_id)),
                "quick": pace.quick_count if pace else 0,
            }
            for reviewer_figures in reviewer_consistency(queue)
        ]


def _draw_params(runs: list[Run], spec: QueueSpec, body: dict[str, Any]) -> dict[int, DrawParams]:
    """Draw parameters by run, as on the page: hand-picked answers, and deviations from earlier ratings."""
    sample_designs = design_samples(runs, select_criteria(runs, spec, body["metrics"]), spec.size, DEFAULT_GUESS)
    return draw_params_by_run(sample_designs, spec, pick_answers(runs, body["answers"]))


def _named_reviewers(body: dict[str, Any], project_id: int) -> NamedReviewers:
    by_tag = {tag: people_named(names, project_id) for tag, names in body["people_of_tags"].items()}
    names_by_answer = body["people_of_answers"].items()
    by_answer = {int(pk): people_named(names, project_id) for pk, names in names_by_answer}
    return NamedReviewers(by_tag, by_answer)
