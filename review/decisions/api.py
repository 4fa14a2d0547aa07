"""REST of adjudication and overrides."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import Person, fetch
from evaluation.core.roles import Action
from evaluation.models import Answer
from evaluation.rest.endpoints import ViewSet, person, verb, written, written_by
from evaluation.rest.requests import Pages
from review.decisions.cases import NEEDED, cases_of, possible_cases
from review.decisions.deciding import adjudicate, rule_on
from review.decisions.overrides import metric_of, override, revert
from review.decisions.serializers import AdjudicateBody, CaseShown, OverrideBody, OverrideShown, RulingBody, RulingShown
from review.models import EventRuling, ItemEvent, Override
from review.queues.access import answer_to_override, cases_for_lead, event_for_lead


def _answer_to_adjudicate(user: Person, pk: int) -> Answer:
    return fetch(Answer.objects.select_related("answer_set", "question"), user, Action.ADJUDICATE, pk)


class AnswerViewSet(ViewSet):
    """Deciding about an answer: for leads, and overriding for assigned experts as well."""

    @verb(answer_to_override, OverrideShown, body=OverrideBody, status=201)
    def override(self, answer: Answer, body: dict[str, Any]) -> Override:
        """Store the decision with its reason."""
        metric, reason, me = metric_of(answer, body["metric"]), body["reason"], person(self.request)
        if body["revert"]:
            return revert(answer, metric, reason=reason, by=me)
        return override(answer, metric, value=body["value"], label=body["label"], reason=reason, by=me)

    @verb(_answer_to_adjudicate, OverrideShown, body=AdjudicateBody, status=201)
    def adjudicate(self, answer: Answer, body: dict[str, Any]) -> Override:
        """Store the decision."""
        return adjudicate(answer, metric_of(answer, body.pop("metric")), by=person(self.request), **body)


class CaseViewSet(ViewSet):
    """The open cases of the projects the caller leads: neither who rated nor what the judge said."""

    pagination_class = Pages

    @written_by(CaseShown, paged=True)
    def list(self, request: Request) -> Response:
        """One page, the newest items first. It is looked through for open cases, so that it may have fewer than asked
        for, or none, before the last."""
        items = self.paginate_queryset(possible_cases(cases_for_lead(request.user)).select_related(*NEEDED)) or []
        found = [case for case in cases_of(items) if case.is_open]
        return self.get_paginated_response(written(CaseShown, found, many=True))


class RaisedViewSet(ViewSet):
    """Flags and escalations."""

    @verb(event_for_lead, RulingShown, body=RulingBody, status=201)
    def ruling(self, event: ItemEvent, body: dict[str, Any]) -> EventRuling:
        """Store the ruling."""
        return rule_on(event, by=person(self.request), **body)
