"""Passages found for a question: by words (BM25), by vectors, or by both. In memory, without a table.

BM25 is that of Lucene as ``bm25s`` computes it (k1 1.5, b 0.75). Words are folded and without function words; texts
with Hangul are read by their morphemes where the extra ``ko`` is installed, else without their particles by the closed
list. Both rankings are joined by reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): 1 / (60 + rank), summed
over the first hundred of each.
"""

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
_FUSED, _DEPTH = 60, 100


class Retriever(StrEnum):
    """What a search goes by."""

    WORDS = "words"
    VECTORS = "vectors"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found: its place in what is searched, from 0, and its score; higher is better."""

    place: int
    score: float


def words_of(text: str) -> list[str]:
    """What a text is found by."""
    if analysis() == KIWI and is_korean(text):
        return [stem.form for stem in stems(folded(text))]
    return list(content_tokens(text))


class WordIndex:
    """Texts by their words."""

    def __init__(self, texts: Sequence[str]) -> None:
        from bm25s import BM25  # takes half a second, so only when something is searched

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it tells of every index
        words = [words_of(text) for text in texts]
        self._size = len(texts)
        self._known: frozenset[str] = frozenset(word for one in words for word in one)
        self._index: Any = BM25()
        if self._known:
            self._index.index(words, show_progress=False)

    def scores(self, question: str) -> Scores:
        """Of every text; 0 where it shares no word with the question."""
        asked = [word for word in words_of(question) if word in self._known]
        if not asked:
            return np.zeros(self._size, np.float32)
        found: Scores = np.asarray(self._index.get_scores(asked), np.float32)
        return found


class VectorIndex:
    """Texts by their vectors, of which each has length 1."""

    def __init__(self, vectors: Sequence[Vector]) -> None:
        stacked = np.stack(vectors).astype(np.float32)
        self._units = stacked / np.linalg.norm(stacked, axis=1, keepdims=True)

    def scores(self, vector: Vector) -> Scores:
        """The cosine of every text with the question."""
        found: Scores = self._units @ (vector / np.float32(np.linalg.norm(vector)))
        return found


def best(scores: Scores, k: int, *, above: float | None = None) -> list[Hit]:
    """The ``k`` highest scores in order, of equal ones those that stand first; only those ``above`` where it is
    given."""
    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    ordered = places[np.lexsort((places, -scores[places]))][:k]
    return [Hit(int(p), float(scores[p])) for p in ordered if above is None or scores[p] > above]


def fused(rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """Several rankings as one, by reciprocal ranks."""
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, 1):
            sums[hit.place] = sums.get(hit.place, 0.0) + 1 / (_FUSED + rank)
    ordered = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))
    return [Hit(place, score) for place, score in ordered[:k]]


def found_by(
    retriever: Retriever,
    k: int,
    *,
    words: WordIndex | None,
    vectors: VectorIndex | None,
    text: str,
    vector: Vector | None,
) -> list[Hit]:
    """The ``k`` best passages for a question. Words find only what shares one.

    :raises ValueError: where the retriever lacks its index.
    """
    rankings: list[list[Hit]] = []
    depth = k if retriever is not Retriever.BOTH else max(k, _DEPTH)
    if retriever is not Retriever.VECTORS:
        if words is None:
            raise ValueError("words are not indexed")
        rankings.append(best(words.scores(text), depth, above=0.0))
    if retriever is not Retriever.WORDS:
        if vectors is None or vector is None:
            raise ValueError("vectors are not there")
        rankings.append(best(vectors.scores(vector), depth))
    return rankings[0] if len(rankings) == 1 else fused(rankings, k)
