"""Corpora: the list, a version with what is asked about it, a document with its chunks, and the upload."""

from __future__ import annotations

from collections import Counter

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path

from contrib.corpora.coverage import asked_counts, coverage_of, newest_corpora
from contrib.corpora.documents import read_documents
from contrib.corpora.forms import CorpusForm
from contrib.corpora.importing import SourceDocument, difference, import_corpus
from contrib.corpora.indexing import search
from contrib.corpora.models import Corpus, Document
from contrib.corpora.pages import (
    DRAWN,
    CorpusList,
    CorpusPage,
    CorpusUploadPage,
    DocumentPage,
    document_rows,
)
from contrib.corpora.selectors import chunks_named
from evaluation.accounts import access
from evaluation.accounts.access import person, signed_in_form, signed_in_get
from evaluation.core.canonical import whole_number
from evaluation.core.errors import InvalidFile, Problem, Refused
from evaluation.core.roles import Action
from evaluation.messages.sentences import explain, explain_refusal

MOST_LISTED, MOST_FOUND, LONGEST = 200, 20, 1_000


@signed_in_get
def corpus_list(request: HttpRequest) -> HttpResponse:
    """The newest version of every corpus of the person's projects."""
    rows = access.visible(newest_corpora(), request.user, path="project_id")
    counted = rows.annotate(documents_in=Count("documents", distinct=True), chunks_in=Count("chunks", distinct=True))
    newest = counted.select_related("project").order_by("-created_at", "-pk")[:MOST_LISTED]
    shown = [(one, one.documents_in, one.chunks_in) for one in newest]
    several = len({one.project_id for one, _documents, _chunks in shown}) > 1
    imports = access.projects_with(request.user, Action.EVALUATE).exists()
    return render(request, "corpora/list.html", {"page": CorpusList(shown, several, imports)})


@signed_in_get
def corpus(request: HttpRequest, pk: int) -> HttpResponse:
    """A version: its documents, which of its chunks questions name, what changed, and a search."""
    rows = Corpus.objects.select_related("project", "created_by", "predecessor")
    found = access.fetch(rows, request.user, Action.VIEW, pk, path="project_id")
    number = whole_number(request.GET.get("page", ""), 6) or 1
    words = " ".join(request.GET.get("q", "").split())[:LONGEST]
    hits = search(found, words, MOST_FOUND) if words else []
    chunks = chunks_named(found, [id_ for id_, _score in hits])
    coverage, first = coverage_of(found), (number - 1) * DRAWN
    page = CorpusPage(
        found,
        list(Corpus.objects.filter(project=found.project_id, name=found.name).order_by("-version")),
        difference(found.predecessor, found) if found.predecessor else None,
        coverage,
        document_rows(coverage, first),
        words,
        [(chunks[id_], score) for id_, score in hits],
        back=f"?page={number - 1}" if number > 1 else "",
        on=f"?page={number + 1}" if len(coverage.documents) > first + DRAWN else "",
        imports=access.may(request.user, found.project_id, Action.EVALUATE),
    )
    return render(request, "corpora/corpus.html", {"page": page})


@signed_in_get
def document(request: HttpRequest, pk: int) -> HttpResponse:
    """A document in its chunks."""
    rows = Document.objects.select_related("corpus")
    found = access.fetch(rows, request.user, Action.VIEW, pk, path="corpus__project_id")
    chunks = list(found.chunks.order_by("position"))
    counts: Counter[str] = asked_counts(found.corpus.project_id, {one.chunk_id for one in chunks})
    page = DocumentPage(found, [(one, counts[one.chunk_id]) for one in chunks])
    return render(request, "corpora/document.html", {"page": page})


@signed_in_form
def corpus_upload(request: HttpRequest) -> HttpResponse:
    """Choose files; every problem of them, or the version that holds them now."""
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
        except InvalidFile as refused:
            problems += refused.problems
    if problems:
        return _upload_page(request, CorpusUploadPage(form, problems), 400)
    said = form.cleaned_data
    try:
        made = import_corpus(said["project"], said["name"], documents, splitting=form.splitting, by=person(request))
    except Refused as refused:
        form.add_error(None, explain_refusal(refused))
        return _upload_page(request, CorpusUploadPage(form), 400)
    messages.success(request, explain(made.note))
    return redirect("corpus", made.corpus.pk)


def _upload_page(request: HttpRequest, page: CorpusUploadPage, status: int = 200) -> HttpResponse:
    return render(request, "corpora/upload.html", {"page": page}, status=status)


urlpatterns = [
    path("corpora/", corpus_list, name="corpus-list"),
    path("corpora/upload/", corpus_upload, name="corpus-upload"),
    path("corpora/<int:pk>/", corpus, name="corpus"),
    path("corpora/documents/<int:pk>/", document, name="corpus-document"),
]
