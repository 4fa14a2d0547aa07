"""Source 002's own addresses, ``/evaluation/datasets/{id}/runs`` and ``/evaluation/runs/{id}``, without a slash at the
end, for programs that were written for it. What they make and read are runs like all others."""

from dataclasses import replace

from django.urls import path
from django.utils.translation import gettext
from rest_framework.request import Request
from rest_framework.serializers import CharField, ValidationError

from evaluation.accounts.access import fetch
from evaluation.connectors.protocol import RETRIEVAL_ONLY
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.models import Project, QuestionSet, SystemVersion
from evaluation.models.run_spec import ASKING, RunSpec
from evaluation.rest.endpoints import StrictSerializer, person, written_by
from evaluation.runs.api import RunViewSet
from evaluation.runs.making import Asking, ask_for_run
from evaluation.runs.serializers import RunSerializer, RunWhole
from evaluation.specs.rest_fields import SettingsSerializer
from evaluation.systems.services import asked_systems, asked_version

PROFILE = "generation"  # the source's own metrics


class DatasetRunSerializer(SettingsSerializer, StrictSerializer):
    """What source 002 sends, with its defaults, and which system is asked."""

    settings = (ASKING["k"], replace(ASKING["evaluation_type"], default=RETRIEVAL_ONLY, body=""))

    system = CharField(
        default="", allow_blank=True, max_length=220, help_text="else the only system of the project that is asked"
    )


class DatasetRunViewSet(RunViewSet):
    """Runs by the paths and names of source 002."""

    @written_by(RunSerializer, status=201, body=DatasetRunSerializer)
    def start(self, request: Request, pk: int) -> RunWhole:
        """Have a system asked the questions of a set: 201 with the run, which workers do. ``results`` come with it
        from ``/evaluation/runs/{id}``."""
        questions = fetch(QuestionSet.objects.select_related("project"), request.user, Action.EVALUATE, pk)
        body = self.body()
        version = _system(questions.project, body.pop("system"))
        asking = Asking(question_set=questions, version=version, **body)
        judge = None if asking.evaluation_type == RETRIEVAL_ONLY else ""
        run = ask_for_run(asking, RunSpec(profile=PROFILE, judge=judge), person(request))
        return self.whole(run.pk)


def _system(project: Project, name: str) -> SystemVersion:
    """The named system, else the only one of the project that has a connector.

    :raises ValidationError: where none is named and there is not exactly one.
    :raises Refused: ``not_asked``.
    """
    if not name:
        names = asked_systems(project)
        if len(names) != 1:
            raise ValidationError({"system": [gettext("Name the system that is to be asked.")]})
        name = names[0]
    version = asked_version(project, name)
    if version is None:
        raise Refused("not_asked", system=name)
    return version


urlpatterns = [
    path("datasets/<int:pk>/runs", DatasetRunViewSet.as_view({"post": "start"}), name="api-question-set-run"),
    path("runs/<int:pk>", DatasetRunViewSet.as_view({"get": "retrieve"}), name="api-run-of-002"),
]
