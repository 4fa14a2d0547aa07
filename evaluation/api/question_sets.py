"""``question-sets/``: versions of question sets, their questions, and the import of a file."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.accounts.access import fetch
from evaluation.api.endpoints import RowsViewSet, StrictSerializer, part, person, written_by
from evaluation.api.errors import ProblemSerializer, SentenceField
from evaluation.api.filters import ByNameInProject, QuestionFilter
from evaluation.api.pages import PagesInOrder
from evaluation.api.uploading import FILE_BODY, FileOfRows, UploadEndpoint, project_for
from evaluation.core.roles import Action
from evaluation.files.reading import read_questions
from evaluation.models import Question, QuestionSet
from evaluation.questions.importing import Preview, import_question_set, preview_file, set_name

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
    created = serializers.BooleanField(source="imported.created")
    note = SentenceField(source="imported.note", help_text="how it came about, in a sentence")
    metadata_not_taken_over = serializers.ListField(
        source="imported.metadata_not_taken_over", child=serializers.CharField()
    )
    remarks = ProblemSerializer(source="file.remarks", many=True)


class FieldChangeSerializer(serializers.Serializer[Any]):
    """A field of a question with its value before and after."""

    field = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class ChangeSerializer(serializers.Serializer[Any]):
    """A question that both versions have, with the fields that differ."""

    id = serializers.CharField()
    fields = FieldChangeSerializer(many=True)  # type: ignore[assignment]  # a field, not the list of them


class DifferenceSerializer(serializers.Serializer[Any]):
    """Ids of the questions that are added and removed, and those that change."""

    added = serializers.ListField(child=serializers.CharField())
    removed = serializers.ListField(child=serializers.CharField())
    changed = ChangeSerializer(many=True)


class PreviewSerializer(serializers.Serializer[Preview]):
    """What an import would do: ``selects`` is the version that has the content already, else ``newest`` the one that
    the next follows, and ``difference`` the questions that are added, removed and changed."""

    name = serializers.CharField()
    questions = serializers.IntegerField()
    categories = serializers.SerializerMethodField()
    metadata_keys = serializers.ListField(child=serializers.CharField())
    remarks = ProblemSerializer(many=True)
    newest = serializers.IntegerField(source="newest.pk", allow_null=True)
    selects = serializers.IntegerField(source="selects.pk", allow_null=True)
    metadata_not_taken_over = serializers.ListField(child=serializers.CharField())
    difference = DifferenceSerializer(allow_null=True)
    format = serializers.CharField()
    encoding = serializers.CharField()

    def get_categories(self, preview: Preview) -> dict[str, int]:
        """The number of questions by category."""
        return dict(preview.categories)


@extend_schema_view(retrieve=extend_schema(description="The version, with the number of its questions."))
class QuestionSetViewSet(UploadEndpoint, RowsViewSet):
    """All versions of the question sets, newest first, and their questions; a POST imports a file or JSON."""

    rows = SETS
    serializer_class = QuestionSetSerializer
    filterset_class = ByNameInProject

    @written_by(
        ImportedSetSerializer,
        status=201,
        others={200: (ImportedSetSerializer, PreviewSerializer)},
        body={"multipart/form-data": QuestionSetForm, **FILE_BODY},
        query=QuestionSetOptions,
    )
    def create(self, request: Request) -> Response:
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
            return Response(PreviewSerializer(preview_file(project, name, file)).data)
        imported = import_question_set(project, name, file, by=person(request))
        found = {"question_set": SETS.get(pk=imported.question_set.pk), "imported": imported, "file": file}
        return Response(found, status=201 if imported.created else 200)

    @part(QuestionSerializer, pages=PagesInOrder, filters=QuestionFilter)
    def questions(self, request: Request, pk: int) -> QuerySet[Question]:
        """One page."""
        return fetch(QuestionSet.objects.all(), request.user, Action.VIEW, pk).questions.all()
