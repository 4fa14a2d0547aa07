"""REST of profiles."""

from __future__ import annotations

from rest_framework.serializers import ModelSerializer

from evaluation.models import ProfileVersion
from evaluation.rest.endpoints import RowsViewSet
from evaluation.rest.filters import NameInProjectFilter


class ProfileSerializer(ModelSerializer[ProfileVersion]):
    """A profile version; ``spec`` holds its metrics, weights and thresholds."""

    class Meta:
        model = ProfileVersion
        fields = ("id", "project", "name", "version", "spec", "content_hash", "created_at")
        read_only_fields = fields


class ProfileViewSet(RowsViewSet):
    """Profile versions, newest first. A shipped profile appears with its first use in the project."""

    rows = ProfileVersion.objects.all()
    path = "project_id"
    serializer_class = ProfileSerializer
    filterset_class = NameInProjectFilter
