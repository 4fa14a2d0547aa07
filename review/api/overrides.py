"""REST: overriding a score of an answer."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.api.endpoints import Endpoint, person
from review.access import answer_to_override
from review.api.shapes import OverrideBody
from review.api.shown import OverrideShown
from review.overrides import metric_of, override, revert


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
