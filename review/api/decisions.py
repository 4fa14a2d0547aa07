"""REST: what stands above the ratings: overriding scores, and deciding what waits for a lead."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import Person, fetch
from evaluation.api.endpoints import ViewSet, person, verb, written_by
from evaluation.core.roles import Action
from evaluation.models import Answer, Run
from review.api.requests import AdjudicateBody, ManyOverridesBody, OverrideBody, RulingBody
from review.api.serializers import CaseShown, OverrideShown, RulingShown
from review.decisions.cases import open_cases
from review.decisions.deciding import adjudicate, rule_on
from review.decisions.overrides import Effect, effect_of, metric_of, metric_of_run, override, override_many, revert
from review.models import EventRuling, ItemEvent, Override
from review.queues.access import answer_to_override, cases_for_lead, event_for_lead, run_to_override


class EffectShown(serializers.Serializer[Effect]):
    """The answers that get the value; of the others how many stand there already, are adjudicated, or are not the
    caller's."""

    answers = serializers.ListField(child=serializers.IntegerField())
    same = serializers.IntegerField()
    adjudicated = serializers.IntegerField()
    forbidden = serializers.IntegerField()


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


class RunDecisionViewSet(ViewSet):
    """Overriding a metric of many answers of a run with one reason, for leads and assigned experts."""

    @verb(run_to_override, EffectShown, body=ManyOverridesBody, others={201: EffectShown})
    def override(self, run: Run, body: dict[str, Any]) -> Effect | Response:
        """Store a decision for each answer; 200 where it was a dry run."""
        metric, answers = metric_of_run(run, body["metric"]), body["answers"]
        said = {"value": body["value"], "label": body["label"], "by": person(self.request)}
        if body["dry_run"]:
            return effect_of(run, metric, answers, **said)
        return Response(override_many(run, metric, answers, reason=body["reason"], **said), status=201)


class CaseViewSet(ViewSet):
    """The open cases of the projects the caller leads: neither who rated nor what the judge said."""

    @written_by(CaseShown, many=True)
    def list(self, request: Request) -> Any:
        """At most 200, the most pressing first."""
        return open_cases(cases_for_lead(request.user))


class RaisedViewSet(ViewSet):
    """Flags and escalations."""

    @verb(event_for_lead, RulingShown, body=RulingBody, status=201)
    def ruling(self, event: ItemEvent, body: dict[str, Any]) -> EventRuling:
        """Store the ruling."""
        return rule_on(event, by=person(self.request), **body)
