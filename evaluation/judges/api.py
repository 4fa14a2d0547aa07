"""REST API of judges and rubrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.serializers import BooleanField, CharField, IntegerField, ModelSerializer

from evaluation.accounts.access import UserOrAnonymous, fetch, projects_with
from evaluation.core.errors import InvalidFile
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import MAX_REASON_LENGTH, activate, draft, propose, retire
from evaluation.criteria.services import foreign_rubrics
from evaluation.judging.rubric import parse_rubric
from evaluation.messages.explanations import explain
from evaluation.models import JudgeVersion, RubricEvent, RubricVersion
from evaluation.rest.endpoints import (
    RowsViewSet,
    StrictSerializer,
    detail_action,
    detail_view,
    project_for,
    request_user,
    responds_with,
)
from evaluation.rest.filters import NameInProjectFilter, RubricFilter
from evaluation.rest.requests import PagesOldestFirst


class JudgeSerializer(ModelSerializer[JudgeVersion]):
    """A judge version. Only the name of its endpoint is shown, never the address or the key."""

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
    """A rubric version; ``spec`` holds its metrics with anchored levels. ``project`` is null for shipped rubrics,
    ``note`` is the author's reason."""

    class Meta:
        model = RubricVersion
        fields = ("id", "project", "family", "language", "version", "spec", "note", "content_hash", "created_at")
        read_only_fields = fields


class RubricDraftSerializer(StrictSerializer):
    """A version as YAML, as ``rubric show`` prints it; only its wording may differ from the shipped one."""

    project = IntegerField(default=None, allow_null=True, min_value=1)
    text = CharField(max_length=200_000, trim_whitespace=False)
    note = CharField(default="", allow_blank=True, max_length=MAX_REASON_LENGTH)


class RubricStandingSerializer(ModelSerializer[RubricEvent]):
    """An event of a version: judges (by name), time, ground and reason."""

    class Meta:
        model = RubricEvent
        fields = ("project", "judge", "verb", "ground", "reason", "created_at")
        read_only_fields = fields


class OfferSerializer(StrictSerializer):
    """Judges to which the action applies, by the id of any version of that name."""

    judge = IntegerField(min_value=1)


class ForJudgeSerializer(OfferSerializer):
    """Judge and reason of a decision."""

    reason = CharField(max_length=MAX_REASON_LENGTH)


class JudgeViewSet(RowsViewSet):
    """Judge versions, newest first."""

    rows = JudgeVersion.objects.select_related("endpoint")
    path = "project_id"
    serializer_class = JudgeSerializer
    filterset_class = NameInProjectFilter


def _visible_rubrics(user: UserOrAnonymous) -> QuerySet[RubricVersion]:
    projects = list(projects_with(user, Action.VIEW).values_list("pk", flat=True))
    if not projects:
        return RubricVersion.objects.none()
    return RubricVersion.objects.exclude(pk__in=foreign_rubrics(projects).values("pk"))


def _rubric_lookup(action: Action) -> Callable[[UserOrAnonymous, int], RubricVersion]:
    """Lookup of a version for users who have the permission in any project. The judge decides which project is
    checked."""

    def find(user: UserOrAnonymous, pk: int) -> RubricVersion:
        version = _visible_rubrics(user).filter(pk=pk).first()
        if version is None:
            raise Http404
        if not projects_with(user, action).exists():
            raise PermissionDenied
        return version

    return find


class RubricViewSet(RowsViewSet):
    """Rubric versions, newest first. Everybody with a role sees shipped ones; project members see those of the project
    and its criteria. POST creates a draft."""

    serializer_class = RubricSerializer
    filterset_class = RubricFilter

    def get_queryset(self) -> QuerySet[Any]:
        return _visible_rubrics(self.request.user)

    def get_object(self) -> Any:
        version = self.get_queryset().filter(pk=self.kwargs["pk"]).first()
        if version is None:
            raise Http404
        return version

    @responds_with(RubricSerializer, status=201, body=RubricDraftSerializer)
    def create(self, request: Request) -> RubricVersion:
        """Create a draft, or return the version with equal content. Runs use it if they name it."""
        data = self.body()
        project = project_for(request_user(request), data["project"])
        try:
            rubric = parse_rubric(data["text"])
        except InvalidFile as refusal:
            raise ValidationError({"text": [explain(problem) for problem in refusal.problems]}) from refusal
        return draft(project, rubric, by=request_user(request), note=data["note"])

    @detail_view(RubricStandingSerializer, pages=PagesOldestFirst)
    def events(self, request: Request, pk: int) -> QuerySet[RubricEvent]:
        """Events of the version, oldest first."""
        projects = projects_with(request.user, Action.VIEW).values("pk")
        return RubricEvent.objects.filter(version=self.get_object(), project__in=projects)

    @detail_action(_rubric_lookup(Action.EVALUATE), RubricSerializer, body=OfferSerializer)
    def propose(self, version: RubricVersion, data: dict[str, Any]) -> RubricVersion:
        """Propose a draft for acceptance; it becomes a candidate."""
        propose(version, self._judge(data, Action.EVALUATE), by=request_user(self.request))
        return version

    @detail_action(_rubric_lookup(Action.ACTIVATE), RubricSerializer, body=ForJudgeSerializer)
    def activate(self, version: RubricVersion, data: dict[str, Any]) -> RubricVersion:
        """Activate the version for new runs of the judge, by a lead's recorded decision."""
        activate(version, self._judge(data), by=request_user(self.request), reason=data["reason"])
        return version

    @detail_action(_rubric_lookup(Action.ACTIVATE), RubricSerializer, body=ForJudgeSerializer)
    def retire(self, version: RubricVersion, data: dict[str, Any]) -> RubricVersion:
        """Return to the shipped version of the family for new runs of the judge."""
        retire(self._judge(data), version.family, by=request_user(self.request), reason=data["reason"])
        return version

    def _judge(self, data: dict[str, Any], action: Action = Action.ACTIVATE) -> JudgeVersion:
        rows = JudgeVersion.objects.all()
        return fetch(rows, self.request.user, action, data["judge"], path="project_id")
