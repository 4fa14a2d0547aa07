"""REST: what a lead does with a queue under way, and how far its reviewers agree."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request

from evaluation.accounts.access import LARGEST_ID
from evaluation.api.endpoints import StrictSerializer, ViewSet, part, person, verb
from evaluation.core.errors import UnknownName
from evaluation.models import User
from evaluation.runs.exports import download, take_export, take_figures
from review.api.requests import TOO_OFTEN
from review.evidence.answers import expose_queue
from review.models import ReviewQueue
from review.models.queue_spec import MOST_REVIEWS
from review.queues.access import leads, queue_for_lead, queue_for_reading
from review.queues.directing import Moved, extend_all, name_people, reassign, release_all, set_deadline
from review.queues.making import close, reopen
from review.queues.progress import paces
from review.reports.item_export import ITEM_EXPORTS, export_items
from review.results.variation import consistency


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

    format = serializers.ChoiceField(choices=ITEM_EXPORTS.names, required=False, default="jsonl")


class CountShown(serializers.Serializer[Moved]):
    """How many items a step touched; ``kept`` did not change hands."""

    items = serializers.IntegerField(source="moved")
    kept = serializers.IntegerField(default=0)


class ReviewerFiguresShown(serializers.Serializer[Any]):
    """A reviewer on a metric: agreement with the others and with themselves (the keys of ``agreement``; ``bias`` with
    the others is leniency), null without an answer that tells; and the pace."""

    reviewer = serializers.CharField()
    metric = serializers.CharField(source="figures.metric.name")
    peers = serializers.JSONField(source="figures.peers.to_dict", allow_null=True)
    oneself = serializers.JSONField(source="figures.oneself.to_dict", allow_null=True)
    median_seconds = serializers.FloatField(source="pace.median_seconds", allow_null=True)
    under_three_seconds = serializers.IntegerField(source="quick")


class LeadingViewSet(ViewSet):
    """What a lead does with a queue under way."""

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

    @extend_schema(
        parameters=[ExportQuery],
        responses={
            (200, "application/x-ndjson"): OpenApiTypes.STR,
            (200, "text/csv"): OpenApiTypes.STR,
            429: TOO_OFTEN,
        },
    )
    @action(detail=True, pagination_class=None, query=("format",))
    def export(self, request: Request, pk: int) -> StreamingHttpResponse:
        """One row for each item; who rates in an open queue of these answers is recorded as having seen the judge."""
        queue, me = queue_for_reading(request.user, pk), person(request)
        asked = ExportQuery(data=request.query_params)
        asked.is_valid(raise_exception=True)
        lead = leads(me, queue)
        take_export(me)
        made = export_items(queue, asked.validated_data["format"], None if lead else me)
        if lead:
            expose_queue(me, queue)
        return download(made)

    @part(ReviewerFiguresShown, many=True, others={429: TOO_OFTEN})
    def agreement(self, request: Request, pk: int) -> list[dict[str, Any]]:
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


def member(queue: ReviewQueue, name: str) -> User:
    """A reviewer of the queue by user name.

    :raises UnknownName: naming the near ones.
    """
    known = {row.reviewer.get_username(): row.reviewer for row in queue.members.select_related("reviewer")}
    if name not in known:
        raise UnknownName("reviewer", name, list(known))
    return known[name]
