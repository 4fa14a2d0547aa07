"""REST: ``corpora/`` with their versions, documents and chunks, import of a file, and search."""

# mypy: disable-error-code="assignment"
# Serializers of the REST framework have attributes named ``label``, ``source`` and ``fields``.

from typing import Any

from django.conf import settings
from django.db.models import Count, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.serializers import BooleanField, CharField, FloatField, IntegerField, ModelSerializer, Serializer

from contrib.corpora.documents import read_documents
from contrib.corpora.importing import import_corpus
from contrib.corpora.indexing import search_words
from contrib.corpora.models import Chunk, Corpus, Document
from contrib.corpora.selectors import get_chunks
from contrib.corpora.splitting import Splitting
from evaluation.accounts.access import fetch
from evaluation.core.roles import Action
from evaluation.rest.endpoints import (
    FILE_BODY,
    FormFileField,
    RowsViewSet,
    StrictSerializer,
    UploadEndpoint,
    detail_view,
    project_for,
    request_user,
    responds_with,
)
from evaluation.rest.errors import SentenceField
from evaluation.rest.filters import NameInProjectFilter
from evaluation.rest.requests import PagesOldestFirst

MAX_RESULTS, MAX_QUERY_LENGTH = 50, 1_000
CORPORA = Corpus.objects.annotate(
    document_count=Count("documents", distinct=True), chunk_count=Count("chunks", distinct=True)
)


class CorpusSerializer(ModelSerializer[Corpus]):
    """One version of a corpus."""

    documents = IntegerField(source="document_count", read_only=True)
    chunks = IntegerField(source="chunk_count", read_only=True)

    class Meta:
        model = Corpus
        fields = (
            "id",
            "project",
            "name",
            "version",
            "content_hash",
            "predecessor",
            "splitting",
            "documents",
            "chunks",
            "created_at",
        )
        read_only_fields = fields


class DocumentSerializer(ModelSerializer[Document]):
    """A document with the plain text read from its file."""

    document_id = CharField(source="external_id", read_only=True)

    class Meta:
        model = Document
        fields = ("id", "document_id", "position", "title", "media", "text", "content_hash", "metadata")
        read_only_fields = fields


class ChunkSerializer(ModelSerializer[Chunk]):
    """A chunk: the text of its document (a row) from ``start`` to ``end``."""

    class Meta:
        model = Chunk
        fields = ("id", "chunk_id", "document", "position", "start", "end", "text", "content_hash")
        read_only_fields = fields


class CorpusOptions(StrictSerializer):
    """Options of an uploaded file of documents."""

    project = IntegerField(required=False, min_value=1, help_text="id of the project; required if there are several")
    name = CharField(max_length=200)
    characters = IntegerField(default=800, min_value=100, max_value=8_000, help_text="maximum characters of a chunk")
    overlap = IntegerField(default=0, min_value=0, max_value=5, help_text="sentences that the next chunk repeats")


class CorpusForm(CorpusOptions):
    """A form with a file of documents."""

    file = FormFileField()


class ImportedCorpusSerializer(Serializer[Any]):
    """The result of an import: a new version, or the existing one with the same content."""

    corpus = CorpusSerializer()
    created = BooleanField(source="imported.created")
    note = SentenceField(source="imported.note", help_text="result of the import as a sentence")


class SearchQuery(StrictSerializer):
    """Query of a search."""

    q = CharField(max_length=MAX_QUERY_LENGTH)
    k = IntegerField(default=10, min_value=1, max_value=MAX_RESULTS)


class FoundSerializer(Serializer[Any]):
    """A chunk that shares words with the query, and its BM25 score."""

    score = FloatField()
    chunk = ChunkSerializer()


@extend_schema_view(retrieve=extend_schema(description="The version, with the number of its documents and chunks."))
class CorpusViewSet(UploadEndpoint, RowsViewSet):
    """All versions of the corpora, newest first; a POST imports a file."""

    rows = CORPORA
    path = "project_id"
    serializer_class = CorpusSerializer
    filterset_class = NameInProjectFilter

    @responds_with(
        ImportedCorpusSerializer,
        status=201,
        other_responses={200: ImportedCorpusSerializer},
        body={"multipart/form-data": CorpusForm, **FILE_BODY},
        query=CorpusOptions,
    )
    def create(self, request: Request) -> Response:
        """Import a corpus: 201 with a new version, 200 with the existing one of the same content, 400 with every
        problem of the file."""
        body, options = self.upload()
        project = project_for(request_user(request), options.get("project"))
        documents = read_documents(body.content, body.file_name, max_bytes=settings.CONCORD_UPLOAD_BYTES)
        splitting = Splitting(characters=options["characters"], overlap=options["overlap"])
        imported = import_corpus(project, options["name"], documents, splitting=splitting, by=request_user(request))
        result = {"corpus": CORPORA.get(pk=imported.corpus.pk), "imported": imported}
        return Response(result, status=201 if imported.created else 200)

    @detail_view(DocumentSerializer, pages=PagesOldestFirst)
    def documents(self, request: Request, pk: int) -> QuerySet[Document]:
        """One page."""
        return fetch(Corpus.objects.all(), request.user, Action.VIEW, pk, path=self.path).documents.all()

    @detail_view(ChunkSerializer, pages=PagesOldestFirst)
    def chunks(self, request: Request, pk: int) -> QuerySet[Chunk]:
        """One page."""
        return fetch(Corpus.objects.all(), request.user, Action.VIEW, pk, path=self.path).chunks.all()

    @detail_view(FoundSerializer, query=SearchQuery, many=True)
    def search(self, request: Request, pk: int) -> list[dict[str, Any]]:
        """Return the chunks that share words with the query, best first."""
        corpus = fetch(Corpus.objects.all(), request.user, Action.VIEW, pk, path=self.path)
        query = self.validated_query()
        hits = search_words(corpus, query["q"], query["k"])
        chunks = get_chunks(corpus, [id_ for id_, _score in hits])
        return [{"score": score, "chunk": chunks[id_]} for id_, score in hits]


router = SimpleRouter(use_regex_path=False)
router.register("corpora", CorpusViewSet, "api-corpus")
urlpatterns = router.urls
