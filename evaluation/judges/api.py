"""REST of judges and rubrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.serializers import BooleanField, CharField, IntegerField, ModelSerializer

from evaluation.accounts.access import Person, fetch, projects_with
from evaluation.core.errors import InvalidFile
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import LONGEST_REASON, activate, draft, propose, retire
from evaluation.criteria.services import rubrics_of_others
from evaluation.judging.rubric import parse_rubric
from evaluation.messages.sentences import explain
from evaluation.models import JudgeVersion, RubricEvent, RubricVersion
from evaluation.rest.endpoints import RowsViewSet, StrictSerializer, part, person, project_for, verb, written_by
from evaluation.rest.filters import ByNameInProject, RubricFilter
from evaluation.rest.requests import PagesInOrder


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
    """A rubric version; ``spec`` holds its metrics with their anchored levels. ``project`` is null for those that ship,
    ``note`` says why a person wrote it."""

    class Meta:
        model = RubricVersion
        fields = ("id", "project", "family", "language", "version", "spec", "note", "content_hash", "created_at")
        read_only_fields = fields


class RubricDraftSerializer(StrictSerializer):
    """A version as YAML, as ``rubric show`` prints one; only its words may differ from the shipped one."""

    project = IntegerField(default=None, allow_null=True, min_value=1)
    text = CharField(max_length=200_000, trim_whitespace=False)
    note = CharField(default="", allow_blank=True, max_length=LONGEST_REASON)


class RubricStandingSerializer(ModelSerializer[RubricEvent]):
    """What happened to a version: for which judges (by their name), when, on what ground and why."""

    class Meta:
        model = RubricEvent
        fields = ("project", "judge", "verb", "ground", "reason", "created_at")
        read_only_fields = fields


class OfferSerializer(StrictSerializer):
    """For the judges of whose name it is done, by the id of one of their versions."""

    judge = IntegerField(min_value=1)


class ForJudgeSerializer(OfferSerializer):
    """The same, and why."""

    reason = CharField(max_length=LONGEST_REASON)


class JudgeViewSet(RowsViewSet):
    """Judge versions, newest first."""

    rows = JudgeVersion.objects.select_related("endpoint")
    path = "project_id"
    serializer_class = JudgeSerializer
    filterset_class = ByNameInProject


def _rubrics_seen(user: Person) -> QuerySet[RubricVersion]:
    projects = list(projects_with(user, Action.VIEW).values_list("pk", flat=True))
    if not projects:
        return RubricVersion.objects.none()
    return RubricVersion.objects.exclude(pk__in=rubrics_of_others(projects).values("pk"))


def _for(action: Action) -> Callable[[Person, int], RubricVersion]:
    """A version, for who may do this somewhere; the judge that is named decides where."""

    def find(user: Person, pk: int) -> RubricVersion:
        found = _rubrics_seen(user).filter(pk=pk).first()
        if found is None:
            raise Http404
        if not projects_with(user, action).exists():
            raise PermissionDenied
        return found

    return find


class RubricViewSet(RowsViewSet):
    """Rubric versions, newest first. Shipped ones belong to no project: whoever may look at runs anywhere sees them;
    those that a project wrote, and those of its criteria, its people see. A POST drafts one."""

    serializer_class = RubricSerializer
    filterset_class = RubricFilter

    def get_queryset(self) -> QuerySet[Any]:
        """What the caller may see; none for somebody without a role."""
        return _rubrics_seen(self.request.user)

    def get_object(self) -> Any:
        """The one of the address among them."""
        found = self.get_queryset().filter(pk=self.kwargs["pk"]).first()
        if found is None:
            raise Http404
        return found

    @written_by(RubricSerializer, status=201, body=RubricDraftSerializer)
    def create(self, request: Request) -> RubricVersion:
        """The version with this content, made as a draft where there is none; it is judged by where a run names it."""
        asked = self.body()
        project = project_for(person(request), asked["project"])
        try:
            rubric = parse_rubric(asked["text"])
        except InvalidFile as refused:
            raise ValidationError({"text": [explain(problem) for problem in refused.problems]}) from refused
        return draft(project, rubric, by=person(request), note=asked["note"])

    @part(RubricStandingSerializer, pages=PagesInOrder)
    def events(self, request: Request, pk: int) -> QuerySet[RubricEvent]:
        """What happened to the version, oldest first."""
        projects = projects_with(request.user, Action.VIEW).values("pk")
        return RubricEvent.objects.filter(version=self.get_object(), project__in=projects)

    @verb(_for(Action.EVALUATE), RubricSerializer, body=OfferSerializer)
    def propose(self, version: RubricVersion, asked: dict[str, Any]) -> RubricVersion:
        """Offer a draft for acceptance; it is a candidate then."""
        propose(version, self._judge(asked, Action.EVALUATE), by=person(self.request))
        return version

    @verb(_for(Action.ACTIVATE), RubricSerializer, body=ForJudgeSerializer)
    def activate(self, version: RubricVersion, asked: dict[str, Any]) -> RubricVersion:
        """Let new runs of the judge work by it, by a lead's decision, which is recorded with its reason."""
        activate(version, self._judge(asked), by=person(self.request), reason=asked["reason"])
        return version

    @verb(_for(Action.ACTIVATE), RubricSerializer, body=ForJudgeSerializer)
    def retire(self, version: RubricVersion, asked: dict[str, Any]) -> RubricVersion:
        """Let new runs of the judge work by the shipped version of the family again."""
        retire(self._judge(asked), version.family, by=person(self.request), reason=asked["reason"])
        return version

    def _judge(self, asked: dict[str, Any], action: Action = Action.ACTIVATE) -> JudgeVersion:
        rows = JudgeVersion.objects.all()
        return fetch(rows, self.request.user, action, asked["judge"], path="project_id")
