"""``judges/``, ``rubrics/`` and ``profiles/``: what runs are scored with, all versions, read only."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from rest_framework import serializers

from evaluation.accounts.access import projects_with
from evaluation.api.endpoints import RowsViewSet
from evaluation.api.filters import ByNameInProject, RubricFilter
from evaluation.core.roles import Action
from evaluation.criteria.services import rubrics_of_others
from evaluation.models import JudgeVersion, ProfileVersion, RubricVersion


class JudgeSerializer(serializers.ModelSerializer[JudgeVersion]):
    """A judge version. Of its endpoint only the name is shown, never an address or a key."""

    endpoint = serializers.CharField(source="endpoint.name", default=None, read_only=True, allow_null=True)
    is_baseline = serializers.BooleanField(read_only=True)

    class Meta:
        model = JudgeVersion
        fields = (
            "id",
            "project",
            "name",
            "version",
            "model",
            "language",
            "params",
            "method",
            "endpoint",
            "is_baseline",
            "content_hash",
            "created_at",
        )
        read_only_fields = fields


class RubricSerializer(serializers.ModelSerializer[RubricVersion]):
    """A rubric version; ``spec`` holds its metrics with their anchored levels."""

    class Meta:
        model = RubricVersion
        fields = ("id", "family", "language", "version", "spec", "content_hash", "created_at")
        read_only_fields = fields


class ProfileSerializer(serializers.ModelSerializer[ProfileVersion]):
    """A profile version; ``spec`` holds its metrics, weights and thresholds."""

    class Meta:
        model = ProfileVersion
        fields = ("id", "project", "name", "version", "spec", "content_hash", "created_at")
        read_only_fields = fields


class JudgeViewSet(RowsViewSet):
    """Judge versions, newest first."""

    rows = JudgeVersion.objects.select_related("endpoint")
    path = "project_id"
    serializer_class = JudgeSerializer
    filterset_class = ByNameInProject


class ProfileViewSet(RowsViewSet):
    """Profile versions, newest first. A shipped profile appears with its first use in the project."""

    rows = ProfileVersion.objects.all()
    path = "project_id"
    serializer_class = ProfileSerializer
    filterset_class = ByNameInProject


class RubricViewSet(RowsViewSet):
    """Rubric versions, newest first. They belong to no project: whoever may look at runs anywhere sees them, but for
    those of other projects' criteria."""

    serializer_class = RubricSerializer
    filterset_class = RubricFilter

    def get_queryset(self) -> QuerySet[Any]:
        """All of them but other projects' criteria; none for somebody without a role."""
        projects = list(projects_with(self.request.user, Action.VIEW).values_list("pk", flat=True))
        if not projects:
            return RubricVersion.objects.none()
        return RubricVersion.objects.exclude(pk__in=rubrics_of_others(projects).values("pk"))

    def get_object(self) -> Any:
        """The one of the address among them."""
        found = self.get_queryset().filter(pk=self.kwargs["pk"]).first()
        if found is None:
            raise Http404
        return found
