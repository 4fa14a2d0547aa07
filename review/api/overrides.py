"""REST: overriding a score of an answer."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.api.endpoints import Endpoint, person
from review.api.requests import ManyOverridesBody, OverrideBody
from review.api.serializers import OverrideShown
from review.decisions.overrides import effect_of, metric_of, metric_of_run, override, override_many, revert
from review.queues.access import answer_to_override, run_to_override


class OverrideView(Endpoint):
    """Override any score of an answer, for leads and assigned experts, or take the newest override back."""

    serializer_class = OverrideBody

    @extend_schema(responses={201: OverrideShown})
    def post(self, request: Request, pk: int) -> Response:
        """Store the decision with its reason."""
        answer, body = answer_to_override(request.user, pk), self.body()
        metric, reason, me = metric_of(answer, body["metric"]), body["reason"], person(request)
        if body["revert"]:
            made = revert(answer, metric, reason=reason, by=me)
        else:
            made = override(answer, metric, value=body["value"], label=body["label"], reason=reason, by=me)
        return Response(OverrideShown(made).data, status=201)


class EffectShown(serializers.Serializer[Any]):
    """The answers that get the value; of the others how many stand there already, are adjudicated, or are not the
    caller's."""

    answers = serializers.ListField(child=serializers.IntegerField())
    same = serializers.IntegerField()
    adjudicated = serializers.IntegerField()
    forbidden = serializers.IntegerField()


class ManyOverridesView(Endpoint):
    """Override a metric of many answers of a run with one reason, for leads and assigned experts."""

    serializer_class = ManyOverridesBody

    @extend_schema(responses={200: EffectShown, 201: EffectShown})
    def post(self, request: Request, pk: int) -> Response:
        """Store a decision for each answer; 200 where it was a dry run."""
        run, body, me = run_to_override(request.user, pk), self.body(), person(request)
        metric = metric_of_run(run, body["metric"])
        said = {"value": body["value"], "label": body["label"], "by": me}
        if body["dry_run"]:
            return Response(EffectShown(effect_of(run, metric, body["answers"], **said)).data)
        done = override_many(run, metric, body["answers"], reason=body["reason"], **said)
        return Response(EffectShown(done).data, status=201)
