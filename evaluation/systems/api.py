"""REST of systems under test and their versions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from evaluation.accounts.access import MAX_ID, fetch
from evaluation.connectors.catalogue import InvalidSettings
from evaluation.core.roles import Action
from evaluation.messages.system_settings import explain_setting_problem
from evaluation.models import Project, System, SystemVersion
from evaluation.rest.endpoints import RowsViewSet, StrictSerializer, request_user, responds_with
from evaluation.rest.filters import NameInProjectFilter
from evaluation.systems.services import connectors, save_system


class SystemVersionSerializer(serializers.ModelSerializer[SystemVersion]):
    """A configuration of a system. Its settings are not exposed, because they may name internal addresses."""

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
    """A system with the settings of its connector, described in `docs/systems.md`."""

    project = serializers.IntegerField(min_value=1, max_value=MAX_ID)
    name = serializers.CharField(max_length=200)
    connector = serializers.ChoiceField(choices=sorted(connectors()))
    settings = serializers.DictField()


@extend_schema_view(retrieve=extend_schema(description="The system with all its versions."))
class SystemViewSet(RowsViewSet):
    """Systems, newest first. POST creates systems with a connector; imports of answers create the others."""

    rows = System.objects.prefetch_related("versions")
    serializer_class = SystemSerializer
    filterset_class = NameInProjectFilter

    @responds_with(SystemSerializer, status=201, body=SystemBody)
    def create(self, request: Request) -> Any:
        """Create a system, or its next version if no version has these settings. 400 names the problems by setting."""
        body = self.body()
        project = fetch(Project.objects.all(), request.user, Action.EVALUATE, body["project"])
        try:
            version = save_system(project, body["name"], body["connector"], body["settings"], request_user(request))
        except InvalidSettings as error:
            errors: dict[str, list[str]] = {}
            for problem in error.problems:
                errors.setdefault(problem.field or "non_field_errors", []).append(explain_setting_problem(problem))
            raise ValidationError({"settings": errors}) from error
        return self.rows.get(pk=version.system_id)
