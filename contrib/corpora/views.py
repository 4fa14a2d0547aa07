"""Pages of corpora: list, version, document, and upload."""

from __future__ import annotations

from collections import Counter

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path

from contrib.corpora.coverage import corpus_coverage, count_questions_by_chunk, newest_corpora
from contrib.corpora.documents import SourceDocument, read_documents
from contrib.corpora.forms import CorpusForm
from contrib.corpora.importing import difference, import_corpus
from contrib.corpora.indexing import search_words
from contrib.corpora.models import Corpus, Document
from contrib.corpora.pages import (
    DOCUMENTS_PER_PAGE,
    CorpusList,
    CorpusPage,
    CorpusUploadPage,
    DocumentPage,
    document_rows,
)
from contrib.corpora.selectors import get_chunks
from evaluation.accounts import access
from evaluation.accounts.access import signed_in_form, signed_in_get, signed_in_user
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError, InvalidFile, Problem
from evaluation.core.roles import Action
from evaluation.messages.explanations import explain, explain_refusal

MAX_LISTED, MAX_HITS, MAX_QUERY_LENGTH = 200, 20, 1_000


@signed_in_get
def corpus_list(request: HttpRequest) -> HttpResponse:
    """List the newest version of every corpus of the user's projects."""
    rows = access.visible(newest_corpora(), request.user, path="project_id")
    annotated = rows.annotate(documents_in=Count("documents", distinct=True), chunks_in=Count("chunks", distinct=True))
    newest = annotated.select_related("project").order_by("-created_at", "-pk")[:MAX_LISTED]
    listed = [(corpus, corpus.documents_in, corpus.chunks_in) for corpus in newest]
    several_projects = len({corpus.project_id for corpus, _documents, _chunks in listed}) > 1
    may_import = access.projects_with(request.user, Action.EVALUATE).exists()
    return render(request, "corpora/list.html", {"page": CorpusList(listed, several_projects, may_import)})


@signed_in_get
def corpus(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a version: documents, coverage by questions, difference from its predecessor, and search."""
    rows = Corpus.objects.select_related("project", "created_by", "predecessor")
    corpus = access.fetch(rows, request.user, Action.VIEW, pk, path="project_id")
    number = parse_int(request.GET.get("page", ""), 6) or 1
    words = " ".join(request.GET.get("q", "").split())[:MAX_QUERY_LENGTH]
    hits = search_words(corpus, words, MAX_HITS) if words else []
    chunks = get_chunks(corpus, [id_ for id_, _score in hits])
    coverage, first = corpus_coverage(corpus), (number - 1) * DOCUMENTS_PER_PAGE
    page = CorpusPage(
        corpus,
        list(Corpus.objects.filter(project=corpus.project_id, name=corpus.name).order_by("-version")),
        difference(corpus.predecessor, corpus) if corpus.predecessor else None,
        coverage,
        document_rows(coverage, first),
        words,
        [(chunks[id_], score) for id_, score in hits],
        previous_url=f"?page={number - 1}" if number > 1 else "",
        next_url=f"?page={number + 1}" if len(coverage.documents) > first + DOCUMENTS_PER_PAGE else "",
        may_import=access.may(request.user, corpus.project_id, Action.EVALUATE),
    )
    return render(request, "corpora/corpus.html", {"page": page})


@signed_in_get
def document(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a document with its chunks."""
    rows = Document.objects.select_related("corpus")
    document = access.fetch(rows, request.user, Action.VIEW, pk, path="corpus__project_id")
    chunks = list(document.chunks.order_by("position"))
    counts: Counter[str] = count_questions_by_chunk(document.corpus.project_id, {chunk.chunk_id for chunk in chunks})
    page = DocumentPage(document, [(chunk, counts[chunk.chunk_id]) for chunk in chunks])
    return render(request, "corpora/document.html", {"page": page})


@signed_in_form
def corpus_upload(request: HttpRequest) -> HttpResponse:
    """Import uploaded files, or show every problem of them."""
    projects = list(access.projects_with(request.user, Action.EVALUATE).order_by("name"))
    if not projects:
        raise PermissionDenied
    if request.method != "POST":
        form = CorpusForm(projects=projects, initial={"name": request.GET.get("name", "")[:200]})
        return _upload_page(request, CorpusUploadPage(form))
    form = CorpusForm(request.POST, request.FILES, projects=projects)
    if not form.is_valid():
        return _upload_page(request, CorpusUploadPage(form), 400)
    documents: list[SourceDocument] = []
    problems: list[Problem] = []
    for file in form.cleaned_data["documents"]:
        try:
            documents += read_documents(file.read(), file.name or "file", max_bytes=settings.CONCORD_UPLOAD_BYTES)
        except InvalidFile as error:
            problems += error.problems
    if problems:
        return _upload_page(request, CorpusUploadPage(form, problems), 400)
    cleaned = form.cleaned_data
    try:
        imported = import_corpus(
            cleaned["project"], cleaned["name"], documents, splitting=form.splitting, by=signed_in_user(request)
        )
    except DomainError as error:
        form.add_error(None, explain_refusal(error))
        return _upload_page(request, CorpusUploadPage(form), 400)
    messages.success(request, explain(imported.note))
    return redirect("corpus", imported.corpus.pk)


def _upload_page(request: HttpRequest, page: CorpusUploadPage, status: int = 200) -> HttpResponse:
    return render(request, "corpora/upload.html", {"page": page}, status=status)


urlpatterns = [
    path("corpora/", corpus_list, name="corpus-list"),
    path("corpora/upload/", corpus_upload, name="corpus-upload"),
    path("corpora/<int:pk>/", corpus, name="corpus"),
    path("corpora/documents/<int:pk>/", document, name="corpus-document"),
]
