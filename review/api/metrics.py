"""``metrics/``: figures for a monitoring system, for administrators' tokens."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_LATEST
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from evaluation.accounts.access import projects_with
from evaluation.api.endpoints import Endpoint
from evaluation.core.roles import Action
from evaluation.runs.monitoring import exposition


class MetricsView(Endpoint):
    """The machine's figures, with the calls about pairs, in the Prometheus text format, over the projects that the
    caller administers."""

    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request) -> HttpResponse:
        """All figures, read now.

        :raises PermissionDenied: for anybody who administers no project.
        """
        projects = list(projects_with(request.user, Action.ADMINISTER).values_list("pk", flat=True))
        if not projects:
            raise PermissionDenied
        return HttpResponse(exposition(projects), content_type=CONTENT_TYPE_LATEST)
