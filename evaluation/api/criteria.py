"""``criteria/``: custom criteria in all their versions, read only; drafting and activating are the back office's."""

from __future__ import annotations

from django.db.models import OuterRef, Subquery
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import fetch
from evaluation.api.endpoints import Endpoint, ListEndpoint
from evaluation.api.filters import CriterionFilter
from evaluation.core.roles import Action
from evaluation.criteria.active_criteria import newest_events
from evaluation.models import CriterionEvent, CriterionVersion

_IN_FORCE = newest_events().filter(criterion=OuterRef("criterion"), verb=CriterionEvent.Verb.ACTIVATED)
VERSIONS = CriterionVersion.objects.select_related("criterion").annotate(
    version_in_force=Subquery(_IN_FORCE.values("version_id")[:1])
)
OF_PROJECT = "criterion__project_id"


class CriterionSerializer(serializers.ModelSerializer[CriterionVersion]):
    """A version of a criterion; ``spec`` holds its scale, levels, instruction, what the judge may see and categories.
    ``active`` tells whether it is the version in force; runs judge that one only."""

    project = serializers.IntegerField(source="criterion.project_id", read_only=True)
    name = serializers.CharField(source="criterion.name", read_only=True)
    active = serializers.SerializerMethodField()

    class Meta:
        model = CriterionVersion
        fields = ("id", "project", "name", "version", "active", "spec", "content_hash", "created_at")
        read_only_fields = fields

    def get_active(self, row: CriterionVersion) -> bool:
        """Whether this version is in force."""
        return getattr(row, "version_in_force", None) == row.pk


class CriterionList(ListEndpoint):
    """Versions of criteria, newest first, drafts included."""

    rows = VERSIONS
    path = OF_PROJECT
    serializer_class = CriterionSerializer
    filterset_class = CriterionFilter


class CriterionDetail(Endpoint):
    """One version of a criterion."""

    serializer_class = CriterionSerializer

    def get(self, request: Request, pk: int) -> Response:
        """The version."""
        row = fetch(VERSIONS, request.user, Action.VIEW, pk, path=OF_PROJECT)
        return Response(CriterionSerializer(row).data)
