"""``corpora/`` in versions with their documents and chunks, the import of a file, and a search."""

# mypy: disable-error-code="assignment"
# The REST framework has attributes named ``label``, ``source`` and ``fields``; here they are fields.

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
from contrib.corpora.indexing import search
from contrib.corpora.models import Chunk, Corpus, Document
from contrib.corpora.selectors import chunks_named
from contrib.corpora.splitting import Splitting
from evaluation.accounts.access import fetch
from evaluation.core.roles import Action
from evaluation.rest.endpoints import (
    FILE_BODY,
    FileOfRows,
    RowsViewSet,
    StrictSerializer,
    UploadEndpoint,
    part,
    person,
    project_for,
    written_by,
)
from evaluation.rest.errors import SentenceField
from evaluation.rest.filters import ByNameInProject
from evaluation.rest.requests import PagesInOrder

MOST_FOUND, LONGEST_SEARCH = 50, 1_000
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
    """A document, as the text that was read from its file."""

    document_id = CharField(source="external_id", read_only=True)

    class Meta:
        model = Document
        fields = ("id", "document_id", "position", "title", "media", "text", "content_hash", "metadata")
        read_only_fields = fields


class ChunkSerializer(ModelSerializer[Chunk]):
    """A chunk: its text is that of its document (a row) from ``start`` to ``end``."""

    class Meta:
        model = Chunk
        fields = ("id", "chunk_id", "document", "position", "start", "end", "text", "content_hash")
        read_only_fields = fields


class CorpusOptions(StrictSerializer):
    """What is said beside a file of documents."""

    project = IntegerField(required=False, min_value=1, help_text="needed with several projects")
    name = CharField(max_length=200)
    characters = IntegerField(default=800, min_value=100, max_value=8_000, help_text="most characters of a chunk")
    overlap = IntegerField(default=0, min_value=0, max_value=5, help_text="sentences that the next chunk repeats")


class CorpusForm(CorpusOptions):
    """A form with a file of documents."""

    file = FileOfRows()


class ImportedCorpusSerializer(Serializer[Any]):
    """What became of a file: a new version, or the version that has its content already."""

    corpus = CorpusSerializer()
    created = BooleanField(source="imported.created")
    note = SentenceField(source="imported.note", help_text="how it came about, in a sentence")


class SearchQuery(StrictSerializer):
    """What is searched for."""

    q = CharField(max_length=LONGEST_SEARCH)
    k = IntegerField(default=10, min_value=1, max_value=MOST_FOUND)


class FoundSerializer(Serializer[Any]):
    """A chunk that shares words with what was searched for, and its BM25 score."""

    score = FloatField()
    chunk = ChunkSerializer()


@extend_schema_view(retrieve=extend_schema(description="The version, with the number of its documents and chunks."))
class CorpusViewSet(UploadEndpoint, RowsViewSet):
    """All versions of the corpora, newest first, and what is in them; a POST imports a file."""

    rows = CORPORA
    path = "project_id"
    serializer_class = CorpusSerializer
    filterset_class = ByNameInProject

    @written_by(
        ImportedCorpusSerializer,
        status=201,
        others={200: ImportedCorpusSerializer},
        body={"multipart/form-data": CorpusForm, **FILE_BODY},
        query=CorpusOptions,
    )
    def create(self, request: Request) -> Response:
        """Import a corpus: 201 with a new version, 200 with the one that has the content already, 400 with every
        problem of the file."""
        body, options = self.upload()
        project = project_for(person(request), options.get("project"))
        documents = read_documents(body.content, body.file_name, max_bytes=settings.CONCORD_UPLOAD_BYTES)
        splitting = Splitting(characters=options["characters"], overlap=options["overlap"])
        imported = import_corpus(project, options["name"], documents, splitting=splitting, by=person(request))
        found = {"corpus": CORPORA.get(pk=imported.corpus.pk), "imported": imported}
        return Response(found, status=201 if imported.created else 200)

    @part(DocumentSerializer, pages=PagesInOrder)
    def documents(self, request: Request, pk: int) -> QuerySet[Document]:
        """One page."""
        return fetch(Corpus.objects.all(), request.user, Action.VIEW, pk, path=self.path).documents.all()

    @part(ChunkSerializer, pages=PagesInOrder)
    def chunks(self, request: Request, pk: int) -> QuerySet[Chunk]:
        """One page."""
        return fetch(Corpus.objects.all(), request.user, Action.VIEW, pk, path=self.path).chunks.all()

    @part(FoundSerializer, query=SearchQuery, many=True)
    def search(self, request: Request, pk: int) -> list[dict[str, Any]]:
        """The chunks that share words with what is searched for, the best first."""
        corpus = fetch(Corpus.objects.all(), request.user, Action.VIEW, pk, path=self.path)
        asked = self.asked()
        hits = search(corpus, asked["q"], asked["k"])
        chunks = chunks_named(corpus, [id_ for id_, _score in hits])
        return [{"score": score, "chunk": chunks[id_]} for id_, score in hits]


router = SimpleRouter(use_regex_path=False)
router.register("corpora", CorpusViewSet, "api-corpus")
urlpatterns = router.urls
