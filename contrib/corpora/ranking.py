"""In-memory search of passages by words (BM25), by vectors, or by both.

BM25 is Lucene's variant as computed by ``bm25s`` (k1 1.5, b 0.75). Words are folded, without function words; Korean
texts are split into morphemes with the extra ``ko``, else stripped of particles by a fixed list. Two rankings are
combined by reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): 1 / (60 + rank), summed over the first hundred
of each."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.judging.embedding.similarity import Vector, is_korean
from evaluation.metrics.normalise import KIWI, analysis, content_tokens, folded, stems

Scores = NDArray[np.float32]
_FUSION_CONSTANT, _FUSION_DEPTH = 60, 100


class Retriever(StrEnum):
    """Basis of a search."""

    WORDS = "words"
    VECTORS = "vectors"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class PassageHit:
    """A passage found: its index among the searched passages, from 0, and its score; higher is better."""

    index: int
    score: float


def search_terms(text: str) -> list[str]:
    """Return the search terms of a text."""
    if analysis() == KIWI and is_korean(text):
        return [stem.form for stem in stems(folded(text))]
    return list(content_tokens(text))


class WordIndex:
    """BM25 index of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        # Imported on the first search because the import takes half a second.
        from bm25s import BM25

        # bm25s logs every index.
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        words = [search_terms(text) for text in texts]
        self._size = len(texts)
        self._vocabulary: frozenset[str] = frozenset(word for text_words in words for word in text_words)
        self._index: Any = BM25()
        if self._vocabulary:
            self._index.index(words, show_progress=False)

    def scores(self, question: str) -> Scores:
        """Return the BM25 score of every text; 0 without a shared word."""
        terms = [word for word in search_terms(question) if word in self._vocabulary]
        if not terms:
            return np.zeros(self._size, np.float32)
        scores: Scores = np.asarray(self._index.get_scores(terms), np.float32)
        return scores


class VectorIndex:
    """Index of texts by vectors, normalised to length 1."""

    def __init__(self, vectors: Sequence[Vector]) -> None:
        stacked = np.stack(vectors).astype(np.float32)
        self._units = stacked / np.linalg.norm(stacked, axis=1, keepdims=True)

    def scores(self, vector: Vector) -> Scores:
        """Return the cosine similarity of every text with the question."""
        scores: Scores = self._units @ (vector / np.float32(np.linalg.norm(vector)))
        return scores


def top_hits(scores: Scores, k: int, *, above: float | None = None) -> list[PassageHit]:
    """Return the ``k`` highest scores in descending order, ties by position; with ``above``, only scores greater than
    it."""
    if k < len(scores):
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        indices = np.flatnonzero(scores >= threshold)
    else:
        indices = np.arange(len(scores))
    ordered = indices[np.lexsort((indices, -scores[indices]))][:k]
    return [PassageHit(int(index), float(scores[index])) for index in ordered if above is None or scores[index] > above]


def fuse_rankings(rankings: Sequence[Sequence[PassageHit]], k: int) -> list[PassageHit]:
    """Combine rankings by reciprocal rank fusion."""
    fused_scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, 1):
            fused_scores[hit.index] = fused_scores.get(hit.index, 0.0) + 1 / (_FUSION_CONSTANT + rank)
    ordered = sorted(fused_scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return [PassageHit(index, score) for index, score in ordered[:k]]


def rank_passages(
    retriever: Retriever,
    k: int,
    *,
    words: WordIndex | None,
    vectors: VectorIndex | None,
    text: str,
    vector: Vector | None,
) -> list[PassageHit]:
    """Return the ``k`` best passages for a question. Word search returns only passages that share a word.

    :raises ValueError: if the retriever lacks its index."""
    rankings: list[list[PassageHit]] = []
    depth = k if retriever is not Retriever.BOTH else max(k, _FUSION_DEPTH)
    if retriever is not Retriever.VECTORS:
        if words is None:
            raise ValueError("words are not indexed")
        rankings.append(top_hits(words.scores(text), depth, above=0.0))
    if retriever is not Retriever.WORDS:
        if vectors is None or vector is None:
            raise ValueError("vectors are not there")
        rankings.append(top_hits(vectors.scores(vector), depth))
    return rankings[0] if len(rankings) == 1 else fuse_rankings(rankings, k)
