"""REST: draws, for leads."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts import access
from evaluation.api.endpoints import Endpoint, person
from evaluation.api.pages import Pages
from evaluation.core.roles import Action
from evaluation.models import Run
from review.api.requests import DrawBody, NothingBody, design_from
from review.api.serializers import DrawShown
from review.models import Draw
from review.queues.access import draw_for_lead, draws_of
from review.queues.draws import make_draw, strata_of
from review.queues.making import metrics_of


class DrawListView(Endpoint):
    """The draws of the projects the caller leads."""

    serializer_class = DrawBody
    pagination_class: Any = Pages

    @extend_schema(responses=DrawShown(many=True))
    def get(self, request: Request) -> Response:
        """One page, newest first."""
        return self.get_paginated_response(_shown(self.paginate_queryset(draws_of(request.user)) or []))

    @extend_schema(responses={201: DrawShown})
    def post(self, request: Request) -> Response:
        """Draw a sample without a queue."""
        body = self.body()
        run = access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, body["run"])
        metric = metrics_of([run], [body["metric"]])[0] if body["metric"] else None
        made = make_draw(
            run,
            body["strategy"],
            body["size"],
            body["seed"],
            person(request),
            metric=metric,
            params=design_from(body),
        )
        return Response(_shown([made])[0], status=201)


class DrawView(Endpoint):
    """A draw."""

    serializer_class = NothingBody

    @extend_schema(responses=DrawShown)
    def get(self, request: Request, pk: int) -> Response:
        """The draw with its strata."""
        return Response(_shown([draw_for_lead(request.user, pk)])[0])


def _shown(draws: list[Draw]) -> list[dict[str, Any]]:
    strata = {draw.pk: strata_of(draw) for draw in draws}
    return [dict(one) for one in DrawShown(draws, many=True, context={"strata": strata}).data]
