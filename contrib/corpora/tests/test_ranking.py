"""Search by words, vectors and both."""

from __future__ import annotations

import numpy as np
import pytest

from contrib.corpora.documents import SourceDocument
from contrib.corpora.importing import import_corpus
from contrib.corpora.indexing import load_passages, search_words
from contrib.corpora.ranking import (
    PassageHit,
    Retriever,
    VectorIndex,
    WordIndex,
    fuse_rankings,
    rank_passages,
    top_hits,
)
from tests.factories import make_project

pytestmark = pytest.mark.both_databases

TEXTS = ["The cat sat on the mat.", "A dog and a cat.", "휴가는 15일까지 쓸 수 있다.", "Nothing of it."]


def test_bm25_is_lucenes() -> None:
    # "cat" is in 2 of 4 texts: idf = ln(1 + (4 - 2 + 0.5) / (2 + 0.5)) = ln 2.
    index = WordIndex(["cat sat mat", "dog cat", "one two three", "four five six seven"])
    # mean length 12 / 4 = 3; tf part = 1 / (1 + 1.5 * (1 - 0.75 + 0.75 * length / 3)): 1 / 2.5 and 1 / 2.125
    assert index.scores("cat") == pytest.approx([np.log(2) / 2.5, np.log(2) / 2.125, 0, 0], abs=1e-6)


@pytest.mark.slow
def test_korean_is_found_without_its_particles() -> None:
    index = WordIndex(TEXTS)
    (hit,) = top_hits(index.scores("휴가를 며칠 쓰나요?"), 1, above=0.0)
    assert hit.index == 2


@pytest.mark.parametrize("question", ["", "   ", "zebra", "the of"])
@pytest.mark.slow
def test_words_that_no_text_has_find_nothing(question: str) -> None:
    assert top_hits(WordIndex(TEXTS).scores(question), 3, above=0.0) == []


def test_texts_without_a_word_can_be_indexed() -> None:
    assert list(WordIndex(["...", "!"]).scores("cat")) == [0, 0]


def test_equal_scores_keep_their_order() -> None:
    assert [hit.index for hit in top_hits(np.array([1, 2, 1, 2, 0], np.float32), 3)] == [1, 3, 0]
    assert [hit.index for hit in top_hits(np.array([1, 2], np.float32), 5)] == [1, 0]


def test_vectors_are_compared_by_cosine() -> None:
    index = VectorIndex([np.array([2, 0], np.float32), np.array([1, 1], np.float32)])
    assert index.scores(np.array([0, 3], np.float32)) == pytest.approx([0, np.sqrt(0.5)])


def test_reciprocal_ranks_are_summed() -> None:
    word_hits, vector_hits = [PassageHit(7, 3.0), PassageHit(5, 2.0)], [PassageHit(5, 0.9), PassageHit(1, 0.8)]
    # 5: 1/62 + 1/61, 7: 1/61, 1: 1/62
    assert fuse_rankings([word_hits, vector_hits], 2) == [
        PassageHit(5, pytest.approx(1 / 62 + 1 / 61)),
        PassageHit(7, pytest.approx(1 / 61)),
    ]
    word_index, vector_index = WordIndex(["cat", "dog"]), VectorIndex(np.eye(2, dtype=np.float32))
    vector = np.array([0, 1], np.float32)
    hits = rank_passages(Retriever.BOTH, 2, words=word_index, vectors=vector_index, text="cat", vector=vector)
    assert [(hit.index, hit.score) for hit in hits] == [(0, pytest.approx(1 / 61 + 1 / 62)), (1, pytest.approx(1 / 61))]
    with pytest.raises(ValueError):
        rank_passages(Retriever.VECTORS, 2, words=word_index, vectors=None, text="cat", vector=None)


@pytest.mark.django_db
def test_equal_texts_are_found_once_by_their_first_id() -> None:
    documents = [SourceDocument(name, text) for name, text in (("a", "A cat."), ("b", "A cat."), ("c", "A dog."))]
    corpus = import_corpus(make_project(), "c", documents, by=None).corpus
    first = corpus.chunks.order_by("position").first()
    assert first is not None
    assert [id_ for id_, _ in search_words(corpus, "cat", 5)] == [first.chunk_id]
    assert load_passages(corpus).texts == ("A cat.", "A dog.")
