"""REST: ratings; a reviewer sees the own ones alone."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters.rest_framework import CharFilter, ChoiceFilter, DjangoFilterBackend, FilterSet, NumberFilter
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import LARGEST_ID
from evaluation.api.endpoints import Endpoint
from evaluation.api.pages import Pages
from review.api.serializers import RatingShown
from review.models import Rating
from review.queues.access import ratings_of


def _id_filter(field: str) -> NumberFilter:
    return NumberFilter(field_name=field, min_value=1, max_value=LARGEST_ID, decimal_places=0)


class RatingFilter(FilterSet):  # type: ignore[misc]  # the package has no types
    """Ratings by answer, queue, run, metric, reviewer and phase."""

    answer = _id_filter("answer_id")
    queue = _id_filter("assignment__item__queue_id")
    run = _id_filter("assignment__item__run_id")
    metric = CharFilter(field_name="metric__name")
    reviewer = CharFilter(field_name="reviewer__username")
    phase = ChoiceFilter(field_name="phase", choices=[("initial", "initial"), ("final", "final")])


class RatingListView(Endpoint):
    """Ratings of the projects whose results the caller may see, else the caller's own; never those of an answer the
    caller still has to rate."""

    serializer_class = RatingShown
    pagination_class: Any = Pages
    filter_backends: Any = (DjangoFilterBackend,)
    filterset_class = RatingFilter

    def get_queryset(self) -> QuerySet[Rating]:
        """What the caller may see."""
        return (
            ratings_of(self.request.user)
            .select_related("answer__question", "metric", "reviewer", "rubric_version")
            .prefetch_related("rated_parts")
        )

    @extend_schema(responses=RatingShown(many=True))
    def get(self, request: Request) -> Response:
        """One page, newest first."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(RatingShown(page, many=True).data)
