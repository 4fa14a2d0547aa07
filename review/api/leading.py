"""REST: what a lead does with a queue under way, and how far its reviewers agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import LARGEST_ID
from evaluation.api.endpoints import Endpoint, StrictSerializer, person
from evaluation.core.errors import UnknownName
from evaluation.models import User
from evaluation.runs.exports import take_export, take_figures
from review.api.requests import TOO_OFTEN, NothingBody
from review.evidence.exposures import expose_queue
from review.models import ReviewQueue
from review.queues.access import leads, queue_for_lead, queue_for_reading
from review.queues.directing import extend_all, name_people, reassign, release_all, set_deadline
from review.queues.making import MOST_REVIEWS
from review.queues.progress import Pace, paces
from review.reports.item_export import FORMATS, export_items
from review.results.consistency import Consistency, consistency


def _name() -> serializers.CharField:
    return serializers.CharField(max_length=150)


def _items(**more: Any) -> serializers.ListField:
    one = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)
    return serializers.ListField(child=one, max_length=5_000, **more)


class ReassignBody(StrictSerializer):
    """``giver`` and ``taker`` are user names; ``items`` are ids, left out for all the giver has not rated."""

    giver = _name()
    taker = _name()
    items = _items(required=False, allow_null=True, default=None)


class ReviewerBody(StrictSerializer):
    """A user name."""

    reviewer = _name()


class NamesBody(StrictSerializer):
    """Items by id, and the user names of exactly those who are to rate them."""

    items = _items(allow_empty=False)
    reviewers = serializers.ListField(child=_name(), min_length=1, max_length=MOST_REVIEWS)


class DeadlineBody(StrictSerializer):
    """A moment to come, or null for none."""

    deadline = serializers.DateTimeField(allow_null=True)


class ExportQuery(StrictSerializer):
    """The format of the file."""

    format = serializers.ChoiceField(choices=list(FORMATS), required=False, default="jsonl")


class CountShown(serializers.Serializer[Any]):
    """How many items a step touched; ``kept`` did not change hands."""

    items = serializers.IntegerField()
    kept = serializers.IntegerField(default=0)


class ReviewerFiguresShown(serializers.Serializer[Any]):
    """A reviewer on a metric: agreement with the others and with themselves (the keys of ``agreement``; ``bias`` with
    the others is leniency), null without an answer that tells; and the pace."""

    reviewer = serializers.CharField()
    metric = serializers.CharField()
    peers = serializers.JSONField(allow_null=True)
    oneself = serializers.JSONField(allow_null=True)
    median_seconds = serializers.FloatField(allow_null=True)
    under_three_seconds = serializers.IntegerField()


class ReassignView(Endpoint):
    """Give a person's unrated items to another."""

    serializer_class = ReassignBody

    @extend_schema(responses=CountShown)
    def post(self, request: Request, pk: int) -> Response:
        """Reassign."""
        queue, body = queue_for_lead(request.user, pk), self.body()
        giver, taker = member(queue, body["giver"]), member(queue, body["taker"])
        moved = reassign(queue, giver, taker, by=person(request), items=body["items"])
        return Response(CountShown({"items": moved.moved, "kept": moved.kept}).data)


class ReleaseView(Endpoint):
    """Take back what a person has in hand."""

    serializer_class = ReviewerBody

    @extend_schema(responses=CountShown)
    def post(self, request: Request, pk: int) -> Response:
        """Release."""
        queue, body = queue_for_lead(request.user, pk), self.body()
        count = release_all(queue, member(queue, body["reviewer"]), by=person(request))
        return Response(CountShown({"items": count, "kept": 0}).data)


class ExtendView(Endpoint):
    """Prolong what a person has in hand."""

    serializer_class = ReviewerBody

    @extend_schema(responses=CountShown)
    def post(self, request: Request, pk: int) -> Response:
        """Extend."""
        queue, body = queue_for_lead(request.user, pk), self.body()
        count = extend_all(queue, member(queue, body["reviewer"]), by=person(request))
        return Response(CountShown({"items": count, "kept": 0}).data)


class NamesView(Endpoint):
    """Keep items for people."""

    serializer_class = NamesBody

    @extend_schema(responses=CountShown)
    def post(self, request: Request, pk: int) -> Response:
        """Name them."""
        queue, body = queue_for_lead(request.user, pk), self.body()
        people = [member(queue, name) for name in body["reviewers"]]
        count = name_people(queue, body["items"], people, by=person(request))
        return Response(CountShown({"items": count, "kept": 0}).data)


class DeadlineView(Endpoint):
    """Move the deadline."""

    serializer_class = DeadlineBody

    @extend_schema(responses={204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Set it."""
        queue, body = queue_for_lead(request.user, pk), self.body()
        set_deadline(queue, body["deadline"], by=person(request))
        return Response(status=204)


class ExportView(Endpoint):
    """The items of a queue as a file: for leads all that was said, for members the own ratings of own items."""

    serializer_class = NothingBody
    query = ("format",)

    @extend_schema(
        parameters=[ExportQuery],
        responses={
            (200, "application/x-ndjson"): OpenApiTypes.STR,
            (200, "text/csv"): OpenApiTypes.STR,
            429: TOO_OFTEN,
        },
    )
    def get(self, request: Request, pk: int) -> StreamingHttpResponse:
        """One row for each item; who rates in an open queue of these answers is recorded as having seen the judge."""
        queue, me = queue_for_reading(request.user, pk), person(request)
        asked = ExportQuery(data=request.query_params)
        asked.is_valid(raise_exception=True)
        lead = leads(me, queue)
        take_export(me)
        made = export_items(queue, asked.validated_data["format"], None if lead else me)
        if lead:
            expose_queue(me, queue)
        response = StreamingHttpResponse(made.chunks, content_type=made.media_type)
        response["Content-Disposition"] = f'attachment; filename="{made.file_name}"'
        return response


class ReviewersView(Endpoint):
    """How far the reviewers of a queue agree, for its lead."""

    serializer_class = NothingBody

    @extend_schema(responses={200: ReviewerFiguresShown(many=True), 429: TOO_OFTEN})
    def get(self, request: Request, pk: int) -> Response:
        """One entry for each reviewer and metric with anything to compare."""
        queue = queue_for_lead(request.user, pk)
        take_figures(person(request))
        names = dict(queue.members.values_list("reviewer", "reviewer__username"))
        speed = paces(queue)
        found = [_figures(one, names, speed.get(one.reviewer_id)) for one in consistency(queue)]
        return Response(ReviewerFiguresShown(found, many=True).data)


def member(queue: ReviewQueue, name: str) -> User:
    """A reviewer of the queue by user name.

    :raises UnknownName: naming the near ones.
    """
    known = {row.reviewer.get_username(): row.reviewer for row in queue.members.select_related("reviewer")}
    if name not in known:
        raise UnknownName("reviewer", name, list(known))
    return known[name]


def _figures(one: Consistency, names: Mapping[int, str], pace: Pace | None) -> dict[str, Any]:
    return {
        "reviewer": names.get(one.reviewer_id, ""),
        "metric": one.metric.name,
        "peers": one.peers.to_dict() if one.peers else None,
        "oneself": one.oneself.to_dict() if one.oneself else None,
        "median_seconds": pace.median_seconds if pace else None,
        "under_three_seconds": pace.quick if pace else 0,
    }
