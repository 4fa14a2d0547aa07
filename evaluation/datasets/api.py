"""REST API of question sets."""

from __future__ import annotations

# mypy: disable-error-code="assignment"
# These fields have names of DRF attributes: ``label``, ``source``, ``context`` and ``fields``.
from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import (
    BooleanField,
    CharField,
    ChoiceField,
    DictField,
    IntegerField,
    JSONField,
    ListField,
    ModelSerializer,
    Serializer,
    SerializerMethodField,
)

from evaluation.accounts.access import fetch
from evaluation.core.errors import Problem
from evaluation.core.roles import Action
from evaluation.datasets.importing import import_question_set, set_name
from evaluation.datasets.uploads import QUESTIONS, Preview, preview_file
from evaluation.formats.shaping import MAX_MAP_BYTES, Shape, read_map
from evaluation.formats.streaming import MemorySource, read_question_set
from evaluation.formats.tree import MAX_BYTES
from evaluation.models import ImportBatch, Project, Question, QuestionSet
from evaluation.rest.endpoints import (
    FILE_BODY,
    FormFileField,
    RowsViewSet,
    TextOptions,
    UploadEndpoint,
    detail_view,
    project_for,
    request_user,
    responds_with,
)
from evaluation.rest.errors import ProblemSerializer, SentenceField
from evaluation.rest.filters import NameInProjectFilter, QuestionFilter
from evaluation.rest.requests import PagesOldestFirst, UploadedBody
from evaluation.runs.large_uploads import CHUNK_BYTES, LARGE_BYTES, store_large_questions

QUESTION_SETS = QuestionSet.objects.annotate(question_count=Count("questions"))


class QuestionSetSerializer(ModelSerializer[QuestionSet]):
    """Version of a question set."""

    questions = IntegerField(source="question_count", read_only=True)

    class Meta:
        model = QuestionSet
        fields = ("id", "project", "name", "version", "content_hash", "predecessor", "questions", "created_at")
        read_only_fields = fields


class QuestionSerializer(ModelSerializer[Question]):
    """Question; ``content`` holds all imported fields under the product's names."""

    question = CharField(source="text", read_only=True)
    question_id = CharField(source="external_id", read_only=True)
    content = DictField(source="spec", read_only=True)

    class Meta:
        model = Question
        fields = ("id", "question_id", "category", "difficulty", "group", "question", "content", "metadata")
        read_only_fields = fields


class ReadByMap(TextOptions):
    """Options for reading a file."""

    map = CharField(
        default="",
        max_length=MAX_MAP_BYTES,
        trim_whitespace=False,
        help_text="text of a map file, which locates the fields of a question or answer in a record",
    )


def shape_from_options(options: dict[str, Any]) -> Shape | None:
    """Return the map file in the options, if any.

    :raises InvalidFile: if it is invalid."""
    text: str = options["map"]
    return read_map(text.encode()) if text.strip() else None


class QuestionSetOptions(ReadByMap):
    """Options of a question set import."""

    project = IntegerField(required=False, min_value=1, help_text="id of the project; required if there are several")
    name = CharField(default="", max_length=200, help_text="name of the set; default: the file's own")
    group_by = CharField(default="", max_length=200, help_text="field whose equal values mark dependent questions")
    qrels = CharField(
        default="",
        max_length=MAX_BYTES,
        trim_whitespace=False,
        help_text="text of a file of relevance judgements (TREC or BEIR) with the expected passages",
    )
    dry_run = BooleanField(default=False, help_text="only preview the import")


class QuestionSetForm(QuestionSetOptions):
    """Form with a question file."""

    file = FormFileField()


class ImportedSetSerializer(Serializer[Any]):
    """Result of an import: a new version, or the existing version with the same content."""

    question_set = QuestionSetSerializer()
    created = BooleanField(source="imported.created")
    note = SentenceField(source="imported.note", help_text="result of the import as a sentence")
    metadata_not_taken_over = ListField(source="imported.metadata_not_taken_over", child=CharField())
    remarks = ProblemSerializer(source="file.remarks", many=True)


class UploadSerializer(ModelSerializer[ImportBatch]):
    """A large question file that workers check and import."""

    status = ChoiceField(source="state", choices=ImportBatch.State.choices)
    done = IntegerField(source="work.done", help_text="part of `total`: bytes during the check, then stored questions")
    total = IntegerField(source="work.total")
    problems = SerializerMethodField()
    question_set = IntegerField(source="result_id", allow_null=True, help_text="id of the version after confirmation")

    class Meta:
        model = ImportBatch
        fields = (
            *("id", "project", "name", "file_name", "status", "rows", "done", "total", "problems", "question_set"),
            "created_at",
        )
        read_only_fields = fields

    @extend_schema_field(ProblemSerializer(many=True))
    def get_problems(self, batch: ImportBatch) -> Any:
        """The first problems of a refused file."""
        return ProblemSerializer([Problem(**problem) for problem in batch.work.problems], many=True).data


class FieldChangeSerializer(Serializer[Any]):
    """Field of a question with its value before and after."""

    field = CharField()
    before = JSONField(allow_null=True)
    after = JSONField(allow_null=True)


class ChangeSerializer(Serializer[Any]):
    """Question of both versions, with the fields that differ."""

    id = CharField()
    fields = FieldChangeSerializer(many=True)


class DifferenceSerializer(Serializer[Any]):
    """Ids of added and removed questions, and the changed ones."""

    added = ListField(child=CharField())
    removed = ListField(child=CharField())
    changed = ChangeSerializer(many=True)


class PreviewSerializer(Serializer[Preview]):
    """Preview of an import.

    ``selects``: existing version with the same content. Otherwise ``newest`` is the version that the new one follows,
    and ``difference`` lists added, removed and changed questions."""

    name = CharField()
    questions = IntegerField()
    categories = SerializerMethodField()
    metadata_keys = ListField(child=CharField())
    shape = CharField(help_text="known format of the file, or the map used to read it; otherwise empty")
    columns = SerializerMethodField()
    remarks = ProblemSerializer(many=True)
    newest = IntegerField(source="newest.pk", allow_null=True)
    selects = IntegerField(source="selects.pk", allow_null=True)
    metadata_not_taken_over = ListField(child=CharField())
    difference = DifferenceSerializer(allow_null=True)
    format = CharField()
    encoding = CharField()

    def get_categories(self, preview: Preview) -> dict[str, int]:
        """Number of questions by category."""
        return dict(preview.categories)

    def get_columns(self, preview: Preview) -> dict[str, str]:
        """Fields by column of the file; ``metadata``, or a dash if it is always empty."""
        return dict(preview.columns)


@extend_schema_view(retrieve=extend_schema(description="The version, with the number of its questions."))
class QuestionSetViewSet(UploadEndpoint, RowsViewSet):
    """All versions of the question sets, newest first, and their questions. A POST imports a file or JSON."""

    rows = QUESTION_SETS
    serializer_class = QuestionSetSerializer
    filterset_class = NameInProjectFilter

    @responds_with(
        ImportedSetSerializer,
        status=201,
        other_responses={200: (ImportedSetSerializer, PreviewSerializer), 202: UploadSerializer},
        body={"multipart/form-data": QuestionSetForm, **FILE_BODY},
        query=QuestionSetOptions,
    )
    def create(self, request: Request) -> Response:
        """Import a question set.

        Responds with 201 for a new version, 200 for an existing version with the same content or for the preview of a
        dry run, 400 with every problem of the file. Larger files than 2 MB are read by workers: 202 with the upload,
        whose address is in the header `Location` and shows the progress. A dry run of them ends with the check."""
        body, options = self.upload()
        project = project_for(request_user(request), options.get("project"))
        if len(body.content) > LARGE_BYTES:
            return self._store_large(body, options, project)
        limit = max(settings.CONCORD_UPLOAD_BYTES, len(body.content))
        file = read_question_set(
            MemorySource(body.content),
            body.file_name,
            group_by=options["group_by"],
            shape=shape_from_options(options),
            qrels=options["qrels"].encode(),
            max_bytes=limit,
        )
        if not (body.has_name or options["name"] or isinstance(file.set_metadata.get("name"), str)):
            raise ValidationError({"name": [_("Name the question set: the body has no file name.")]})
        name = set_name(options["name"], file, body.file_name)
        if options["dry_run"]:
            return Response(PreviewSerializer(preview_file(project, name, file)).data)
        imported = import_question_set(project, name, file, by=request_user(request))
        response_data = {
            "question_set": QUESTION_SETS.get(pk=imported.question_set.pk),
            "imported": imported,
            "file": file,
        }
        return Response(response_data, status=201 if imported.created else 200)

    def _store_large(self, body: UploadedBody, options: dict[str, Any], project: Project) -> Response:
        if not (body.has_name or options["name"]):
            raise ValidationError({"name": [_("Name the question set: the body has no file name.")]})
        batch = store_large_questions(
            project,
            options["name"],
            body.file_name,
            (body.content[start : start + CHUNK_BYTES] for start in range(0, len(body.content), CHUNK_BYTES)),
            request_user(self.request),
            options={**{name: options[name] for name in ("group_by", "map", "qrels")}, "encoding": ""},
            confirmed=not options["dry_run"],
        )
        headers = {"Location": reverse("api-upload-detail", args=[batch.pk])}
        return Response(UploadSerializer(batch).data, status=202, headers=headers)

    @detail_view(QuestionSerializer, pages=PagesOldestFirst, filters=QuestionFilter)
    def questions(self, request: Request, pk: int) -> QuerySet[Question]:
        """Questions of a version, in pages."""
        return fetch(QuestionSet.objects.all(), request.user, Action.VIEW, pk).questions.all()


@extend_schema_view(retrieve=extend_schema(description="The upload, with its progress and its problems."))
class UploadViewSet(RowsViewSet):
    """Large question files, newest first. A POST to `question-sets` adds one."""

    rows = ImportBatch.objects.filter(kind=QUESTIONS, work__isnull=False).select_related("work")
    needs = Action.EVALUATE
    serializer_class = UploadSerializer
    filterset_class = NameInProjectFilter
