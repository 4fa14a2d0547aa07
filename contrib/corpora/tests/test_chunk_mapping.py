"""Mapping of known passages to another version of their corpus."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from contrib.corpora.chunk_mapping import map_chunks
from contrib.corpora.documents import SourceDocument
from contrib.corpora.importing import import_corpus
from contrib.corpora.models import Corpus
from contrib.corpora.question_mapping import carry_questions
from contrib.corpora.splitting import Splitting
from evaluation.core.errors import DomainError
from evaluation.models import Project
from tests.factories import make_project, make_question_set, question_spec

pytestmark = pytest.mark.django_db
SENTENCES = [f"This is sentence number {n:02} of the text." for n in range(12)]  # 39 characters each


def _version(project: Project, characters: int, *texts: str) -> Corpus:
    documents = [SourceDocument(f"d{n}", text) for n, text in enumerate(texts)]
    return import_corpus(project, "c", documents, splitting=Splitting(characters=characters), by=None).corpus


def test_spans_map_to_the_chunks_of_another_splitting() -> None:
    project, text = make_project(), " ".join(SENTENCES)
    long_version, short_version = _version(project, 160, text), _version(project, 100, text)
    ids = [c.chunk_id for c in long_version.chunks.all()]  # 4 sentences each
    smaller = [c.chunk_id for c in short_version.chunks.all()]  # 2 sentences each
    mapping = map_chunks(ids, long_version, short_version)
    assert [mapping.chunks[id_] for id_ in ids] == [tuple(smaller[:2]), tuple(smaller[2:4]), tuple(smaller[4:])]
    reverse_mapping = map_chunks(smaller, short_version, long_version)
    assert reverse_mapping.map_ids(smaller[:3]) == (ids[0], ids[1])
    assert (mapping.lost, mapping.unknown) == ((), ())


def test_chunk_that_shares_less_than_half_is_not_mapped() -> None:
    project, text = make_project(), " ".join(SENTENCES)
    smaller_version, wider_version = _version(project, 120, text), _version(project, 160, text)
    ids, wider = ([c.chunk_id for c in version.chunks.all()] for version in (smaller_version, wider_version))
    # sentences 3 to 5: one of three is in the first wider chunk (0 to 3), two in the second (4 to 7)
    assert map_chunks([ids[1]], smaller_version, wider_version).chunks[ids[1]] == (wider[1],)


def test_words_are_found_after_the_document_changed() -> None:
    project = make_project()
    old_version = _version(project, 100, " ".join(SENTENCES))
    new_version = _version(project, 100, "A new beginning stands here now. " + " ".join(SENTENCES[:4]))
    first, last = old_version.chunks.first(), old_version.chunks.last()
    assert first is not None
    assert last is not None
    mapping = map_chunks([first.chunk_id, last.chunk_id, "nothing"], old_version, new_version)
    assert (mapping.lost, mapping.unknown) == ((last.chunk_id,), ("nothing",))
    texts = dict(new_version.chunks.values_list("chunk_id", "text"))
    assert any(SENTENCES[0] in texts[id_] for id_ in mapping.chunks[first.chunk_id])


def test_words_moved_to_another_document_keep_their_id() -> None:
    project = make_project()
    old_version, new_version = (
        _version(project, 100, "First text."),
        _version(project, 100, "Another text.", "First text."),
    )
    chunk = old_version.chunks.get()
    assert map_chunks([chunk.chunk_id], old_version, new_version).chunks == {chunk.chunk_id: (chunk.chunk_id,)}


def test_question_set_is_rebased_as_its_next_version() -> None:
    project, text = make_project(), " ".join(SENTENCES)
    long_version, short_version = _version(project, 160, text), _version(project, 100, text)
    ids, smaller = ([c.chunk_id for c in version.chunks.all()] for version in (long_version, short_version))
    truth = ((ids[0],), (ids[1], "elsewhere"), ())
    specs = [question_spec(n).model_copy(update={"ground_truth_chunk_ids": t}) for n, t in enumerate(truth, 1)]
    questions = make_question_set(project, specs=specs)
    result = carry_questions(questions, long_version, short_version, by=None)
    after = [q.read().ground_truth_chunk_ids for q in result.imported.question_set.questions.order_by("position")]
    assert result.imported.question_set.version == questions.version + 1
    assert after == [tuple(smaller[:2]), (*smaller[2:4], "elsewhere"), ()]
    output = StringIO()
    call_command("rebase_questions", f"{questions.name}@1", "--from", "c@1", "--to", "c@2", stdout=output)
    assert output.getvalue().splitlines()[1:] == ["carried\t2", "lost\t0", "not in c v1\t1"]


def test_lost_passages_are_refused_unless_dropped() -> None:
    project = make_project()
    old_version, new_version = _version(project, 100, "Old words stand here."), _version(project, 100, "Other ones.")
    truth = (old_version.chunks.get().chunk_id,)
    questions = make_question_set(
        project, specs=[question_spec(1).model_copy(update={"ground_truth_chunk_ids": truth})]
    )
    with pytest.raises(DomainError, match="passages_lost"):
        carry_questions(questions, old_version, new_version, by=None)
    result = carry_questions(questions, old_version, new_version, drop_lost=True, by=None)
    assert result.imported.question_set.questions.get().read().ground_truth_chunk_ids == ()
    with pytest.raises(DomainError, match="nothing_to_carry"):
        carry_questions(make_question_set(project), old_version, new_version, by=None)
    other_corpus = import_corpus(project, "d", [SourceDocument("a", "Text.")], by=None).corpus
    with pytest.raises(DomainError, match="corpora_differ"):
        carry_questions(questions, old_version, other_corpus, by=None)
