"""``answer-sets/``: one asking of a system each, and the import of an answer file."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Count
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import fetch
from evaluation.api.endpoints import RowsViewSet, StrictSerializer, person, written_by
from evaluation.api.errors import ProblemSerializer
from evaluation.api.filters import AnswerSetFilter
from evaluation.api.run_serializers import RunState, RunSummarySerializer
from evaluation.api.uploading import FILE_BODY, FileOfRows, UploadEndpoint
from evaluation.core.roles import Action
from evaluation.files.reading import read_answers
from evaluation.models import AnswerSet, QuestionSet
from evaluation.runs.answer_files import import_answers, score_by_rules

AT_ONCE_SECONDS = 10.0  # what rules may take within a request; the workers do the rest
SETS = AnswerSet.objects.select_related("system_version__system").annotate(answer_count=Count("answers"))


class AnswerSetSerializer(serializers.ModelSerializer[AnswerSet]):
    """One asking of a system."""

    system = serializers.CharField(source="system_version.system.name", read_only=True)
    answers = serializers.IntegerField(source="answer_count", read_only=True)

    class Meta:
        model = AnswerSet
        fields = (
            "id",
            "project",
            "question_set",
            "system",
            "system_version",
            "k",
            "evaluation_type",
            "source",
            "content_hash",
            "answers",
            "created_at",
        )
        read_only_fields = fields


class AnswerOptions(StrictSerializer):
    """What is said beside a file of answers."""

    question_set = serializers.IntegerField(min_value=1, help_text="id of one version of a question set")
    system = serializers.CharField(max_length=200)
    k = serializers.IntegerField(required=False, default=5, min_value=1, max_value=50)
    name = serializers.CharField(required=False, default="", max_length=300, help_text="of the run")


class AnswerForm(AnswerOptions):
    """A form with a file of answers."""

    file = FileOfRows()


class ImportedAnswersSerializer(serializers.Serializer[Any]):
    """What became of an answer file: its answer set, and the run with its rule metrics."""

    answer_set = AnswerSetSerializer()
    run = RunSummarySerializer()
    created = serializers.BooleanField(source="imported.created")
    missing = serializers.ListField(
        source="imported.missing", child=serializers.CharField(), help_text="ids of questions without an answer"
    )
    remarks = ProblemSerializer(source="imported.remarks", many=True)


@extend_schema_view(retrieve=extend_schema(description="The answer set, with the number of its answers."))
class AnswerSetViewSet(UploadEndpoint, RowsViewSet):
    """Answer sets, newest first; a POST imports a file and scores it by rules."""

    rows = SETS
    serializer_class = AnswerSetSerializer
    filterset_class = AnswerSetFilter

    @written_by(
        ImportedAnswersSerializer,
        status=201,
        others={200: ImportedAnswersSerializer},
        body={"multipart/form-data": AnswerForm, **FILE_BODY},
        query=AnswerOptions,
    )
    def create(self, request: Request) -> Response:
        """Import the answers of one system: 201, or 200 where exactly these are there already; 400 with every
        problem of the file. Rules that take longer than a request should are done in the background."""
        body, options = self.upload()
        asked = fetch(QuestionSet.objects.all(), request.user, Action.EVALUATE, options["question_set"])
        imported = import_answers(
            asked,
            options["system"],
            read_answers(body.content, body.file_name, max_bytes=settings.CONCORD_UPLOAD_BYTES),
            data=body.content,
            file_name=body.file_name,
            by=person(request),
            name=options["name"],
            k=options["k"],
        )
        run = score_by_rules(imported.run, seconds=AT_ONCE_SECONDS)
        answer_set = SETS.get(pk=run.answer_set_id)
        found = {"answer_set": answer_set, "run": RunState.of(run, request), "imported": imported}
        return Response(found, status=201 if imported.created else 200)
