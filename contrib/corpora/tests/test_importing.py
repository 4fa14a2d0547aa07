"""Import of documents as corpus versions; equal content selects the existing version."""

from __future__ import annotations

import hashlib

import pytest
from django.db import IntegrityError, transaction

from contrib.corpora.documents import Passage, SourceDocument
from contrib.corpora.importing import difference, import_corpus
from contrib.corpora.models import Chunk, Corpus, Document
from contrib.corpora.selectors import get_chunks, get_corpus, neighbours
from contrib.corpora.splitting import Splitting
from evaluation.core.errors import DomainError, UnknownName
from evaluation.messages.explanations import explain
from evaluation.models import AuditEvent
from tests.factories import make_project, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

LEAVE = SourceDocument("leave.txt", "A leave may last 15 days.\n\nIt is asked for in writing.", title="Leave")
PAY = SourceDocument("pay.txt", "급여는 매월 25일에 지급한다. 휴일이면 그 전날에 지급한다.", title="급여")
SHORT = Splitting(characters=100)


def test_new_corpus_is_version_1_with_chunks_as_document_spans() -> None:
    project, user = make_project(), make_user()
    result = import_corpus(project, "handbook", [LEAVE, PAY], splitting=SHORT, by=user)
    corpus = result.corpus
    assert result.created
    assert explain(result.note) == "Imported as handbook v1: 2 document(s) in 2 chunk(s)."
    assert (corpus.version, corpus.created_by, corpus.splitting) == (1, user, {"characters": 100, "overlap": 0})
    first, second = corpus.chunks.select_related("document")
    assert first.text == first.document.text[first.start : first.end] == LEAVE.text
    assert (second.position, second.document.external_id, second.start) == (1, "pay.txt", 0)
    digest = hashlib.sha256(LEAVE.text.encode()).hexdigest()
    assert (first.content_hash, first.chunk_id) == (digest, digest[:32])
    event = AuditEvent.objects.get(verb="corpus.imported")
    assert (event.detail["documents"], event.detail["chunks"]) == (2, 2)


def test_equal_content_in_another_order_selects_the_existing_version() -> None:
    project = make_project()
    first = import_corpus(project, "handbook", [LEAVE, PAY], by=None)
    reordered = import_corpus(project, "handbook", [PAY, LEAVE], by=None)
    assert (reordered.created, reordered.corpus) == (False, first.corpus)
    smaller_import = import_corpus(project, "handbook", [LEAVE], by=None)
    assert (smaller_import.corpus.version, smaller_import.corpus.predecessor) == (2, first.corpus)
    repeated_import = import_corpus(project, "handbook", [LEAVE, PAY], by=None)
    assert (repeated_import.corpus, repeated_import.note.code) == (first.corpus, "corpus_selected")
    assert Corpus.objects.count() == 2


def test_another_splitting_is_a_new_version_with_stable_chunk_ids() -> None:
    project = make_project()
    document = SourceDocument(
        "a", "First sentence of the text here. " * 5 + "\n\nThe last paragraph stays as it is here."
    )
    first_version = import_corpus(project, "c", [document], splitting=Splitting(characters=170), by=None).corpus
    second_version = import_corpus(project, "c", [document], splitting=Splitting(characters=100), by=None).corpus
    assert second_version.version == 2
    last = first_version.chunks.last()
    assert last is not None
    assert last.text == "The last paragraph stays as it is here."
    assert get_chunks(second_version, [last.chunk_id, "nothing"])[last.chunk_id].text == last.text
    changes = difference(first_version, second_version)
    assert (changes.added, changes.removed, changes.changed) == ((), (), ())
    assert (changes.chunks_kept, changes.chunks_removed) == (1, 1)


def test_difference_names_the_documents() -> None:
    project = make_project()
    first_version = import_corpus(project, "c", [LEAVE, PAY], by=None).corpus
    changed_document = SourceDocument("leave.txt", "A leave may last 20 days.")
    second_version = import_corpus(project, "c", [changed_document, SourceDocument("new", "New text.")], by=None).corpus
    changes = difference(first_version, second_version)
    assert (changes.added, changes.removed, changes.changed) == (("new",), ("pay.txt",), ("leave.txt",))
    assert (changes.chunks_added, changes.chunks_removed, changes.chunks_kept) == (2, 2, 0)


def test_supplied_chunks_keep_their_ids_and_equal_texts_get_a_number() -> None:
    project = make_project()
    document = SourceDocument("a", "One. Two.", passages=(Passage("p1", 0, 4), Passage("p2", 5, 9)))
    corpus = import_corpus(project, "c", [document], by=None).corpus
    assert [(c.chunk_id, c.text) for c in corpus.chunks.all()] == [("p1", "One."), ("p2", "Two.")]
    second_corpus = import_corpus(
        project, "d", [SourceDocument("a", "Same."), SourceDocument("b", "Same.")], by=None
    ).corpus
    first, second = second_corpus.chunks.all()
    assert second.chunk_id == f"{first.chunk_id}~2"
    before, after = neighbours(corpus.chunks.get(chunk_id="p1"))
    assert before is None
    assert after is not None
    assert after.chunk_id == "p2"


@pytest.mark.parametrize(
    ("documents", "code"),
    [
        ([SourceDocument("a", " \n")], "corpus_empty"),
        ([], "corpus_empty"),
        ([LEAVE, LEAVE], "document_twice"),
        ([SourceDocument("a", "One. Two.", passages=(Passage("p", 0, 4), Passage("p", 5, 9)))], "chunk_twice"),
    ],
)
def test_invalid_corpus_is_refused_and_nothing_is_stored(documents: list[SourceDocument], code: str) -> None:
    with pytest.raises(DomainError) as error:
        import_corpus(make_project(), "c", documents, by=None)
    assert error.value.code == code
    assert not Corpus.objects.exists()


def test_corpus_is_found_by_name_and_version_in_its_project_only() -> None:
    project = make_project()
    first_version = import_corpus(project, "c", [LEAVE], by=None).corpus
    second_version = import_corpus(project, "c", [PAY], by=None).corpus
    assert (get_corpus(project, "c"), get_corpus(project, "c@1")) == (second_version, first_version)
    for search_project, name in ((project, "c@3"), (make_project(), "c")):
        with pytest.raises(UnknownName):
            get_corpus(search_project, name)


@pytest.mark.parametrize("table", [Corpus, Document, Chunk])
def test_rows_are_never_changed(table: type[Corpus | Document | Chunk]) -> None:
    import_corpus(make_project(), "c", [LEAVE], by=None)
    with pytest.raises(IntegrityError), transaction.atomic():
        table.objects.update(created_at="2026-01-01T00:00Z")
