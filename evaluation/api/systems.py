"""``systems/``: systems under test with their versions."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from evaluation.api.endpoints import RowsViewSet
from evaluation.api.filters import ByNameInProject
from evaluation.models import System, SystemVersion


class SystemVersionSerializer(serializers.ModelSerializer[SystemVersion]):
    """A configuration of a system. The configuration itself stays inside: it may name internal addresses."""

    class Meta:
        model = SystemVersion
        fields = ("id", "version", "adapter", "content_hash", "created_at")
        read_only_fields = fields


class SystemSerializer(serializers.ModelSerializer[System]):
    """A system under test."""

    versions = SystemVersionSerializer(many=True, read_only=True)

    class Meta:
        model = System
        fields = ("id", "project", "name", "versions", "created_at")
        read_only_fields = fields


@extend_schema_view(retrieve=extend_schema(description="The system with all its versions."))
class SystemViewSet(RowsViewSet):
    """Systems, newest first; an import of answers makes those it names."""

    rows = System.objects.prefetch_related("versions")
    serializer_class = SystemSerializer
    filterset_class = ByNameInProject
