"""REST of custom criteria."""

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
    """A version of a criterion; ``spec`` holds its scale, levels, instruction, what the judge may see and categories.
    ``active`` tells whether it is the version in force; runs judge that one only."""

    project = IntegerField(source="criterion.project_id", read_only=True)
    name = CharField(source="criterion.name", read_only=True)
    active = SerializerMethodField()

    class Meta:
        model = CriterionVersion
        fields = ("id", "project", "name", "version", "active", "spec", "content_hash", "created_at")
        read_only_fields = fields

    def get_active(self, row: CriterionVersion) -> bool:
        """Whether this version is in force."""
        return getattr(row, "version_in_force", None) == row.pk


class CriterionViewSet(RowsViewSet):
    """Versions of criteria, newest first, drafts included."""

    rows = VERSIONS
    path = "criterion__project_id"
    serializer_class = CriterionSerializer
    filterset_class = CriterionFilter
