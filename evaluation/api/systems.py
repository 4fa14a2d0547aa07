"""``systems/``: systems under test with their versions."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import fetch
from evaluation.api.endpoints import Endpoint, ListEndpoint
from evaluation.api.filters import ByNameInProject
from evaluation.core.roles import Action
from evaluation.models import System, SystemVersion

SYSTEMS = System.objects.prefetch_related("versions")


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


class SystemList(ListEndpoint):
    """Systems, newest first; an import of answers makes those it names."""

    rows = SYSTEMS
    serializer_class = SystemSerializer
    filterset_class = ByNameInProject


class SystemDetail(Endpoint):
    """One system."""

    serializer_class = SystemSerializer

    def get(self, request: Request, pk: int) -> Response:
        """The system with all its versions."""
        return Response(SystemSerializer(fetch(SYSTEMS, request.user, Action.VIEW, pk)).data)
