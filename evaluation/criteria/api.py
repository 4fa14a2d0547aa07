"""REST API of custom criteria."""

from __future__ import annotations

from django.db.models import OuterRef, Subquery
from rest_framework.serializers import CharField, IntegerField, ModelSerializer, SerializerMethodField

from evaluation.criteria.services import newest_events
from evaluation.models import CriterionEvent, CriterionVersion
from evaluation.rest.endpoints import RowsViewSet
from evaluation.rest.filters import CriterionFilter

_IN_FORCE = newest_events().filter(criterion=OuterRef("criterion"), verb=CriterionEvent.Verb.ACTIVATED)
VERSIONS = CriterionVersion.objects.select_related("criterion").annotate(
    version_in_force=Subquery(_IN_FORCE.values("version_id")[:1])
)


class CriterionSerializer(ModelSerializer[CriterionVersion]):
    """A version of a criterion; ``spec`` holds scale, levels, instruction, visible inputs and categories. ``active``:
    whether this version is in force; runs use only that one."""

    project = IntegerField(source="criterion.project_id", read_only=True)
    name = CharField(source="criterion.name", read_only=True)
    active = SerializerMethodField()

    class Meta:
        model = CriterionVersion
        fields = ("id", "project", "name", "version", "active", "spec", "content_hash", "created_at")
        read_only_fields = fields

    def get_active(self, row: CriterionVersion) -> bool:
        return getattr(row, "version_in_force", None) == row.pk


class CriterionViewSet(RowsViewSet):
    """Versions of criteria, newest first, including drafts."""

    rows = VERSIONS
    path = "criterion__project_id"
    serializer_class = CriterionSerializer
    filterset_class = CriterionFilter
