"""Corpora as the reference system searches them, and the vectors of their chunks: made once by ``embed``, kept by the
hash of their text, and read when a search goes by them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from threading import Lock

from contrib.corpora.indexing import Passages, passages_of
from contrib.corpora.models import Corpus
from contrib.corpora.searching import Retriever, VectorIndex, found_by
from contrib.corpora.selectors import corpus_named
from evaluation.connectors.protocol import AskFailed
from evaluation.core.errors import Refused, UnknownName
from evaluation.core.samples import ContextSpec
from evaluation.judges.embeddings import chosen_embedding, embedder_of, keep_vectors, kept_vectors
from evaluation.judging.embedding.similarity import LOCAL, Embedder, EmbeddingChoice, Vector, batches
from evaluation.models import Endpoint
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import Retry, decide
from evaluation.worker.shares import SingleCalls

_TOKENS_PER_CHARACTER = 0.5
_AT_ONCE = 500  # texts of one statement
_PATIENCE_SECONDS = 600.0  # for a place at the endpoint


@dataclass
class CorpusSearch:
    """A corpus to be searched. ``prepare`` reads and indexes it, outside any event loop."""

    corpus: Corpus
    retriever: Retriever
    choice: EmbeddingChoice | None
    _passages: Passages | None = field(default=None, init=False)
    _vectors: VectorIndex | None = field(default=None, init=False)
    _embedder: Embedder | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def prepare(self) -> None:
        """Read the passages and what they are found by.

        :raises Refused: ``vectors_missing``; what opening the embedder is refused for.
        """
        self._passages = passages = passages_of(self.corpus)
        if self.retriever is not Retriever.VECTORS:
            _ = passages.words
        if self.choice is not None:
            self._embedder = embedder_of(self.choice)
            known = _kept(self._embedder.space, passages.texts)
            missing = len(passages.texts) - len(known)
            if missing:
                raise Refused("vectors_missing", corpus=str(self.corpus), missing=missing)
            self._vectors = VectorIndex([known[text] for text in passages.texts])

    def search(self, text: str, k: int) -> tuple[ContextSpec, ...]:
        """The best passages for a question, from any thread.

        :raises AskFailed: where the question could not be embedded.
        """
        passages = self._passages
        if passages is None:
            raise ValueError("the corpus is not prepared")
        vector = self._embedded(text) if self._embedder else None
        words = None if self.retriever is Retriever.VECTORS else passages.words
        hits = found_by(self.retriever, k, words=words, vectors=self._vectors, text=text, vector=vector)
        return tuple(
            ContextSpec(passages.texts[h.place], passages.ids[h.place], h.score, passages.sources[h.place])
            for h in hits
        )

    def _embedded(self, text: str) -> Vector:
        assert self._embedder is not None  # noqa: S101  -- tells the type checker
        if refused := self._embedder.refuses(text):
            raise AskFailed(refused)
        with self._lock, self._embedder as embedder:  # an embedder is for one thread at a time
            found = embedder.embed([text])
        if found.outcome is not Outcome.OK:
            raise AskFailed(str(found.outcome), outcome=Outcome(found.outcome))
        return found.vectors[0]


def corpus_search(project: int, name: str, retriever: str, embeddings: str) -> CorpusSearch:
    """The search of a corpus that is named ``NAME@VERSION``.

    :raises Refused: ``corpus_unknown``, ``embeddings_unknown``; ``no_local_model`` and the like.
    """
    try:
        corpus = corpus_named(project, name)
    except UnknownName as unknown:
        raise Refused("corpus_unknown", corpus=name) from unknown
    kind = Retriever(retriever)
    try:
        choice = None if kind is Retriever.WORDS else chosen_embedding(None, embeddings or LOCAL)
    except UnknownName as unknown:
        raise Refused("embeddings_unknown", name=embeddings) from unknown
    return CorpusSearch(corpus, kind, choice)


def embed(corpus: Corpus, choice: EmbeddingChoice, tell: Callable[[int, int], None] = lambda done, of: None) -> int:
    """Make the vectors of a corpus that are not kept yet; how many were made. Interrupted, it goes on where it was.
    ``tell`` hears how many of all are there.

    :raises Refused: ``embedding_failed`` with the reason; what opening the embedder is refused for.
    """
    texts = passages_of(corpus).texts
    embedder = embedder_of(choice)
    if any(embedder.refuses(text) for text in texts):
        raise Refused("embedding_failed", reason="language")
    known = _kept(embedder.space, texts)
    missing = [text for text in texts if text not in known]
    endpoint = Endpoint.objects.get(pk=choice.endpoint) if choice.endpoint else None
    calls = SingleCalls(endpoint, None, project_id=corpus.project_id) if endpoint else None
    done = len(known)
    with embedder, calls or nullcontext():
        for batch in batches(missing):
            keep_vectors(embedder.space, dict(zip(batch, _vectors(embedder, calls, batch), strict=True)))
            done += len(batch)
            tell(done, len(texts))
    return len(missing)


def _vectors(embedder: Embedder, calls: SingleCalls | None, batch: Sequence[str]) -> Sequence[Vector]:
    earlier: list[Outcome] = []
    rng = random.Random()
    while True:
        if calls is None:
            found = embedder.embed(batch)
        else:
            if calls.wait(time.monotonic() + _PATIENCE_SECONDS, sum(map(len, batch)) * _TOKENS_PER_CHARACTER):
                raise Refused("embedding_failed", reason="endpoint_busy")
            found = calls.make(lambda: embedder.embed(batch))
            calls.heard(found.outcome, found.retry_after)
        outcome = Outcome(found.outcome)
        if outcome is Outcome.OK:
            return found.vectors
        decision = decide(outcome, len(earlier) + 1, found.retry_after, rng, earlier=earlier)
        earlier.append(outcome)
        if not isinstance(decision, Retry):
            raise Refused("embedding_failed", reason=str(outcome))
        time.sleep(decision.seconds)


def _kept(space: str, texts: Sequence[str]) -> dict[str, Vector]:
    found: dict[str, Vector] = {}
    for first in range(0, len(texts), _AT_ONCE):
        found |= kept_vectors(space, texts[first : first + _AT_ONCE])
    return found
