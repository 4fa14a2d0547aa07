"""Read only, all versions: ``judges/``, ``rubrics/`` and ``profiles/`` that runs are scored with, and ``criteria/``,
whose drafting and activating are the back office's."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.http import Http404
from rest_framework.serializers import BooleanField, CharField, IntegerField, ModelSerializer, SerializerMethodField

from evaluation.accounts.access import projects_with
from evaluation.api.endpoints import RowsViewSet
from evaluation.api.filters import ByNameInProject, CriterionFilter, RubricFilter
from evaluation.core.roles import Action
from evaluation.criteria.services import newest_events, rubrics_of_others
from evaluation.models import (
    CriterionEvent,
    CriterionVersion,
    JudgeVersion,
    ProfileVersion,
    RubricVersion,
)


class JudgeSerializer(ModelSerializer[JudgeVersion]):
    """A judge version. Of its endpoint only the name is shown, never an address or a key."""

    endpoint = CharField(source="endpoint.name", default=None, read_only=True, allow_null=True)
    is_baseline = BooleanField(read_only=True)

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


class RubricSerializer(ModelSerializer[RubricVersion]):
    """A rubric version; ``spec`` holds its metrics with their anchored levels."""

    class Meta:
        model = RubricVersion
        fields = ("id", "family", "language", "version", "spec", "content_hash", "created_at")
        read_only_fields = fields


class ProfileSerializer(ModelSerializer[ProfileVersion]):
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
