"""REST endpoints of the ``generation`` kind of evaluation: ``/evaluation/datasets/{id}/runs`` and
``/evaluation/runs/{id}``, without a trailing slash. They create and return ordinary runs."""

from dataclasses import replace

from django.urls import path
from django.utils.translation import gettext
from rest_framework.request import Request
from rest_framework.serializers import CharField, ValidationError

from evaluation.accounts.access import fetch
from evaluation.connectors.protocol import RETRIEVAL_ONLY
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.models import Project, QuestionSet, SystemVersion
from evaluation.models.run_spec import ASK_OPTIONS, RunSpec
from evaluation.rest.endpoints import StrictSerializer, request_user, responds_with
from evaluation.runs.api import RunViewSet
from evaluation.runs.creation import CollectionRequest, launch_run
from evaluation.runs.serializers import RunDetail, RunSerializer
from evaluation.specs.rest_fields import SettingsSerializer
from evaluation.systems.services import connected_systems, connected_version

PROFILE = "generation"


class DatasetRunSerializer(SettingsSerializer, StrictSerializer):
    """The body of a generation run with its defaults, and the system to collect answers from."""

    settings = (ASK_OPTIONS["k"], replace(ASK_OPTIONS["evaluation_type"], default=RETRIEVAL_ONLY, body=""))

    system = CharField(
        default="", allow_blank=True, max_length=220, help_text="else the only system of the project that is asked"
    )


class DatasetRunViewSet(RunViewSet):
    """Runs by the paths and names of the generation kind."""

    @responds_with(RunSerializer, status=201, body=DatasetRunSerializer)
    def start(self, request: Request, pk: int) -> RunDetail:
        """Start a run that collects answers to the questions of a set: 201 with the run. Workers do the rest;
        ``results`` come from ``/evaluation/runs/{id}``."""
        questions = fetch(QuestionSet.objects.select_related("project"), request.user, Action.EVALUATE, pk)
        body = self.body()
        version = _system(questions.project, body.pop("system"))
        collection = CollectionRequest(question_set=questions, version=version, **body)
        judge = None if collection.evaluation_type == RETRIEVAL_ONLY else ""
        run = launch_run(collection, RunSpec(profile=PROFILE, judge=judge), request_user(request))
        return self.run_detail(run.pk)


def _system(project: Project, name: str) -> SystemVersion:
    """The named system, or else the project's only system with a connector.

    :raises ValidationError: without a name, unless there is exactly one such system.
    :raises DomainError: ``not_asked``."""
    if not name:
        names = connected_systems(project)
        if len(names) != 1:
            raise ValidationError({"system": [gettext("Name the system to send questions to.")]})
        name = names[0]
    version = connected_version(project, name)
    if version is None:
        raise DomainError("not_asked", system=name)
    return version


urlpatterns = [
    path("datasets/<int:pk>/runs", DatasetRunViewSet.as_view({"post": "start"}), name="api-question-set-run"),
    path("runs/<int:pk>", DatasetRunViewSet.as_view({"get": "retrieve"}), name="api-run-evaluation"),
]
