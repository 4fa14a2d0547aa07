"""REST: draws, for leads."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request

from evaluation.accounts import access
from evaluation.api.endpoints import ViewSet, person, written_by
from evaluation.api.pages import Pages
from evaluation.core.roles import Action
from evaluation.models import Run
from review.api.requests import DrawBody, design_from
from review.api.serializers import DrawShown
from review.models import Draw
from review.queues.access import draw_for_lead, draws_of
from review.queues.draws import make_draw
from review.queues.making import metrics_of


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
        metric = metrics_of([run], [body["metric"]])[0] if body["metric"] else None
        params = design_from(body)
        return make_draw(
            run, body["strategy"], body["size"], body["seed"], person(request), metric=metric, params=params
        )

    @written_by(DrawShown)
    def retrieve(self, request: Request, pk: int) -> Draw:
        """The draw with its strata."""
        return draw_for_lead(request.user, pk)
