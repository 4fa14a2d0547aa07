"""``systems/``: systems under test with their versions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from evaluation.accounts.access import LARGEST_ID, fetch
from evaluation.connectors.catalogue import BadSettings
from evaluation.core.roles import Action
from evaluation.messages.system_settings import explain_setting
from evaluation.models import Project, System, SystemVersion
from evaluation.rest.endpoints import RowsViewSet, StrictSerializer, person, written_by
from evaluation.rest.filters import ByNameInProject
from evaluation.systems.services import connectors, save_system


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


class SystemBody(StrictSerializer):
    """A system with the settings of its connector; `docs/systems.md` has them."""

    project = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)
    name = serializers.CharField(max_length=200)
    connector = serializers.ChoiceField(choices=sorted(connectors()))
    settings = serializers.DictField()


@extend_schema_view(retrieve=extend_schema(description="The system with all its versions."))
class SystemViewSet(RowsViewSet):
    """Systems, newest first. An import of answers makes those it names; a POST those that are asked."""

    rows = System.objects.prefetch_related("versions")
    serializer_class = SystemSerializer
    filterset_class = ByNameInProject

    @written_by(SystemSerializer, status=201, body=SystemBody)
    def create(self, request: Request) -> Any:
        """Make a system, or its next version where the settings are others than those of every version that it has.
        400 names what is wrong by setting."""
        said = self.body()
        project = fetch(Project.objects.all(), request.user, Action.EVALUATE, said["project"])
        try:
            made = save_system(project, said["name"], said["connector"], said["settings"], person(request))
        except BadSettings as bad:
            wrong: dict[str, list[str]] = {}
            for problem in bad.problems:
                wrong.setdefault(problem.field or "non_field_errors", []).append(explain_setting(problem))
            raise ValidationError({"settings": wrong}) from bad
        return self.rows.get(pk=made.system_id)
