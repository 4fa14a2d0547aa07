"""Addresses and pages of corpora, for the tests of the core that walk all of them."""

from __future__ import annotations

from django.urls import reverse

from contrib.corpora.documents import SourceDocument
from contrib.corpora.importing import import_corpus
from contrib.corpora.models import Corpus
from evaluation.models import Run
from tests.access_rules import EVALUATES_SOMEWHERE, LOGGED_IN, SEES_RUNS
from tests.pages.world import World

RULES = {
    ("GET", "corpus-list"): LOGGED_IN,
    ("GET", "corpus"): SEES_RUNS,
    ("GET", "corpus-document"): SEES_RUNS,
    ("GET", "corpus-upload"): EVALUATES_SOMEWHERE,
    ("POST", "corpus-upload"): EVALUATES_SOMEWHERE,
    ("GET", "api-corpus-list"): LOGGED_IN,
    ("POST", "api-corpus-list"): LOGGED_IN,  # the project that is named decides; here none is: 400
    ("GET", "api-corpus-detail"): SEES_RUNS,
    ("GET", "api-corpus-documents"): SEES_RUNS,
    ("GET", "api-corpus-chunks"): SEES_RUNS,
    ("GET", "api-corpus-search"): SEES_RUNS,
}


def corpus_of(world: World) -> Corpus:
    """Return a corpus of one document, imported when it is first needed."""
    documents = [SourceDocument("leave.txt", "A leave may last 15 days. It is paid.", "Leave")]
    return import_corpus(world.project, "handbook", documents, by=None).corpus


def document_of(world: World) -> int:
    """Return the id of its document."""
    return corpus_of(world).documents.get().pk


SUBJECTS = {
    "corpus": lambda world: corpus_of(world).pk,
    "corpus-document": document_of,
    "corpus-documents": lambda world: corpus_of(world).pk,
}
PAGES = {
    "corpora": ("lead", lambda _: reverse("corpus-list"), 5),
    "corpus": ("lead", lambda world: reverse("corpus", args=[corpus_of(world).pk]), 12),
    "document of a corpus": ("lead", lambda world: reverse("corpus-document", args=[document_of(world)]), 8),
    "upload of documents": ("lead", lambda _: reverse("corpus-upload"), 4),
}


def lead_pages(vector: Run, run: Run) -> list[str]:
    """Addresses that a lead opens."""
    corpus = Corpus.objects.get()
    return [
        reverse("corpus-list"),
        reverse("corpus-upload"),
        reverse("corpus", args=[corpus.pk]) + "?q=14",
        reverse("corpus-document", args=[corpus.documents.earliest("position").pk]),
    ]
