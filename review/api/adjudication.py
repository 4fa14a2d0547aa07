"""REST: what waits for a lead, and deciding it."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import fetch
from evaluation.api.endpoints import Endpoint, person
from evaluation.core.roles import Action
from evaluation.models import Answer
from review.api.requests import AdjudicateBody, NothingBody, RulingBody
from review.api.serializers import OverrideShown
from review.api.shown_cases import CaseShown, RulingShown
from review.decisions.cases import open_cases
from review.decisions.deciding import adjudicate, rule_on
from review.decisions.overrides import metric_of
from review.queues.access import cases_for_lead, event_for_lead


class AdjudicationListView(Endpoint):
    """The open cases of the projects the caller leads: neither who rated nor what the judge said."""

    serializer_class = NothingBody

    @extend_schema(responses=CaseShown(many=True), operation_id="adjudication_list")
    def get(self, request: Request) -> Response:
        """At most 200, the most pressing first."""
        return Response(CaseShown(open_cases(cases_for_lead(request.user)), many=True).data)


class AdjudicateView(Endpoint):
    """Give the value of a metric that counts from now on; the ratings stay."""

    serializer_class = AdjudicateBody

    @extend_schema(responses={201: OverrideShown})
    def post(self, request: Request, pk: int) -> Response:
        """Store the decision."""
        rows = Answer.objects.select_related("answer_set", "question")
        answer, body = fetch(rows, request.user, Action.ADJUDICATE, pk), self.body()
        made = adjudicate(
            answer,
            metric_of(answer, body["metric"]),
            value=body["value"],
            label=body["label"],
            reason=body["reason"],
            seen=body["seen"],
            by=person(request),
        )
        return Response(OverrideShown(made).data, status=201)


class RulingView(Endpoint):
    """Uphold or dismiss a flag or an escalation."""

    serializer_class = RulingBody

    @extend_schema(responses={201: RulingShown})
    def post(self, request: Request, pk: int) -> Response:
        """Store the ruling."""
        event, body = event_for_lead(request.user, pk), self.body()
        made = rule_on(event, upheld=body["upheld"], reason=body["reason"], by=person(request))
        return Response(RulingShown(made).data, status=201)
