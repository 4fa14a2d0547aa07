"""REST API of adjudication and overrides."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import UserOrAnonymous, fetch
from evaluation.core.roles import Action
from evaluation.models import Answer
from evaluation.rest.endpoints import ViewSet, detail_action, request_user, responds_with, serialize
from evaluation.rest.requests import Pages
from review.decisions.adjudication import adjudicate, rule_on
from review.decisions.cases import RELATED, load_cases, possible_cases
from review.decisions.overrides import find_metric, override, revert
from review.decisions.serializers import (
    AdjudicateBody,
    CaseSerializer,
    OverrideBody,
    OverrideSerializer,
    RulingBody,
    RulingSerializer,
)
from review.models import EventRuling, ItemEvent, Override
from review.queues.access import answer_to_override, cases_for_lead, complete_answers, event_for_lead


def _answer_to_adjudicate(user: UserOrAnonymous, pk: int) -> Answer:
    return fetch(complete_answers(), user, Action.ADJUDICATE, pk)


class AnswerViewSet(ViewSet):
    """Decisions on an answer, by leads; assigned experts can override as well."""

    @detail_action(answer_to_override, OverrideSerializer, body=OverrideBody, status=201)
    def override(self, answer: Answer, body: dict[str, Any]) -> Override:
        """Store the decision with its reason."""
        metric, reason, user = find_metric(answer, body["metric"]), body["reason"], request_user(self.request)
        if body["revert"]:
            return revert(answer, metric, reason=reason, by=user)
        return override(answer, metric, value=body["value"], label=body["label"], reason=reason, by=user)

    @detail_action(_answer_to_adjudicate, OverrideSerializer, body=AdjudicateBody, status=201)
    def adjudicate(self, answer: Answer, body: dict[str, Any]) -> Override:
        """Store the decision."""
        return adjudicate(answer, find_metric(answer, body.pop("metric")), by=request_user(self.request), **body)


class CaseViewSet(ViewSet):
    """Open cases of the caller's projects, without reviewers and judge values."""

    pagination_class = Pages

    @responds_with(CaseSerializer, paged=True)
    def list(self, request: Request) -> Response:
        """List open cases, newest items first.

        A page is filtered after it is read, so any page may have fewer rows than requested, or none."""
        items = self.paginate_queryset(possible_cases(cases_for_lead(request.user)).select_related(*RELATED)) or []
        cases = [case for case in load_cases(items) if case.is_open]
        return self.get_paginated_response(serialize(CaseSerializer, cases, many=True))


class ItemEventViewSet(ViewSet):
    """Flags and escalations."""

    @detail_action(event_for_lead, RulingSerializer, body=RulingBody, status=201)
    def ruling(self, event: ItemEvent, body: dict[str, Any]) -> EventRuling:
        """Store the ruling."""
        return rule_on(event, by=request_user(self.request), **body)
