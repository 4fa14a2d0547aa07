"""``question-sets/``: versions of question sets, their questions, and the import of a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import fetch
from evaluation.api.endpoints import Endpoint, ListEndpoint, StrictSerializer, person
from evaluation.api.errors import problem_json
from evaluation.api.filters import ByNameInProject, QuestionFilter
from evaluation.api.pages import PagesInOrder
from evaluation.api.uploading import FILE_BODY, FileOfRows, ProblemSerializer, UploadEndpoint, project_for
from evaluation.core.roles import Action
from evaluation.files.reading import read_questions
from evaluation.models import Question, QuestionSet
from evaluation.questions.importing import Imported, import_question_set, set_name
from evaluation.questions.uploads import Preview, preview_file

SETS = QuestionSet.objects.annotate(question_count=Count("questions"))


class QuestionSetSerializer(serializers.ModelSerializer[QuestionSet]):
    """One version of a question set."""

    questions = serializers.IntegerField(source="question_count", read_only=True)

    class Meta:
        model = QuestionSet
        fields = ("id", "project", "name", "version", "content_hash", "predecessor", "questions", "created_at")
        read_only_fields = fields


class QuestionSerializer(serializers.ModelSerializer[Question]):
    """A question: ``fields`` holds everything it was imported with under the product's names."""

    question = serializers.CharField(source="text", read_only=True)
    question_id = serializers.CharField(source="external_id", read_only=True)
    content = serializers.DictField(source="spec", read_only=True)

    class Meta:
        model = Question
        fields = ("id", "question_id", "category", "difficulty", "group", "question", "content", "metadata")
        read_only_fields = fields


class QuestionSetOptions(StrictSerializer):
    """What is said beside a file of questions."""

    project = serializers.IntegerField(required=False, min_value=1, help_text="needed with several projects")
    name = serializers.CharField(required=False, default="", max_length=200, help_text="else the file's own")
    group_by = serializers.CharField(
        required=False, default="", max_length=200, help_text="field whose equal values mark dependent questions"
    )
    dry_run = serializers.BooleanField(required=False, default=False, help_text="only say what would be imported")


class QuestionSetForm(QuestionSetOptions):
    """A form with a file of questions."""

    file = FileOfRows()


class ImportedSetSerializer(serializers.Serializer[Any]):
    """What became of a file: a new version, or the version that has its content already."""

    question_set = QuestionSetSerializer()
    created = serializers.BooleanField()
    note = serializers.CharField(help_text="how it came about, in a sentence")
    metadata_not_taken_over = serializers.ListField(child=serializers.CharField())
    remarks = ProblemSerializer(many=True)


class QuestionSetList(UploadEndpoint, ListEndpoint):
    """All versions of the question sets, newest first; a POST imports a file or JSON."""

    rows = SETS
    serializer_class = QuestionSetSerializer
    filterset_class = ByNameInProject
    beside = QuestionSetOptions
    query = ("project", "name", "group_by", "dry_run")

    @extend_schema(
        request={"multipart/form-data": QuestionSetForm, **FILE_BODY},
        parameters=[QuestionSetOptions],
        responses={201: ImportedSetSerializer, 200: ImportedSetSerializer},
    )
    def post(self, request: Request) -> Response:
        """Import a question set: 201 with a new version, 200 with the one that has the content already, or with the
        preview of a dry run; 400 with every problem of the file."""
        body, options = self.upload()
        project = project_for(person(request), options.get("project"))
        limit = settings.CONCORD_UPLOAD_BYTES
        file = read_questions(body.content, body.file_name, group_by=options["group_by"], max_bytes=limit)
        if not (body.named or options["name"] or isinstance(file.set_metadata.get("name"), str)):
            raise ValidationError({"name": [_("Name the question set: the body has no file name.")]})
        name = set_name(options["name"], file, body.file_name)
        if options["dry_run"]:
            return Response(preview_json(preview_file(project, name, file)))
        imported = import_question_set(project, name, file, by=person(request))
        remarks = [problem_json(remark) for remark in file.remarks]
        return Response(imported_json(imported) | {"remarks": remarks}, status=201 if imported.created else 200)


class QuestionSetDetail(Endpoint):
    """One version of a question set."""

    serializer_class = QuestionSetSerializer

    def get(self, request: Request, pk: int) -> Response:
        """The version, with the number of its questions."""
        return Response(QuestionSetSerializer(fetch(SETS, request.user, Action.VIEW, pk)).data)


class QuestionList(ListEndpoint):
    """The questions of one version, in its order."""

    pagination_class = PagesInOrder
    serializer_class = QuestionSerializer
    filterset_class = QuestionFilter
    rows = Question.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        """The questions of the version in the address."""
        return super().get_queryset().filter(question_set_id=self.kwargs.get("pk"))

    def get(self, request: Request, pk: int) -> Response:
        """One page."""
        fetch(QuestionSet.objects.all(), request.user, Action.VIEW, pk)
        return self.list(request)


def imported_json(imported: Imported) -> dict[str, Any]:
    """The outcome of an import."""
    row = SETS.get(pk=imported.question_set.pk)
    return {
        "question_set": QuestionSetSerializer(row).data,
        "created": imported.created,
        "note": problem_json(imported.note)["message"],
        "metadata_not_taken_over": imported.metadata_not_taken_over,
    }


def preview_json(preview: Preview) -> dict[str, Any]:
    """A preview with the differences spelled out."""
    return {
        "name": preview.name,
        "questions": preview.questions,
        "categories": dict(preview.categories),
        "metadata_keys": preview.metadata_keys,
        "remarks": [problem_json(remark) for remark in preview.remarks],
        "newest": preview.newest and preview.newest.pk,
        "selects": preview.selects and preview.selects.pk,
        "metadata_not_taken_over": preview.metadata_not_taken_over,
        "difference": None if preview.difference is None else asdict(preview.difference),
        "format": preview.format,
        "encoding": preview.encoding,
    }
