"""Search of the reference system in a corpus, and the vectors of its chunks.

``embed_corpus`` computes the vectors once and caches them by the hash of their text; vector search reads them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from threading import Lock

from contrib.corpora.indexing import Passages, load_passages
from contrib.corpora.models import Corpus
from contrib.corpora.ranking import Retriever, VectorIndex, rank_passages
from contrib.corpora.selectors import get_corpus
from evaluation.connectors.protocol import AskFailed
from evaluation.core.errors import DomainError, UnknownName
from evaluation.core.samples import ContextSpec
from evaluation.judges.embeddings import cache_vectors, cached_vectors, choose_embedding, embedder_of
from evaluation.judging.embedding.similarity import LOCAL, Embedder, EmbeddingChoice, Vector, batches
from evaluation.models import Endpoint
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import Retry, decide
from evaluation.worker.endpoint_quota import SingleCalls

_TOKENS_PER_CHARACTER = 0.5
# Texts in one SQL statement.
_BATCH_SIZE = 500
# Longest wait for a free slot of the endpoint.
_MAX_SLOT_WAIT_SECONDS = 600.0


@dataclass
class CorpusSearch:
    """Search in a corpus. Call ``prepare`` first, outside any event loop: it reads and indexes the corpus."""

    corpus: Corpus
    retriever: Retriever
    choice: EmbeddingChoice | None
    _passages: Passages | None = field(default=None, init=False)
    _vectors: VectorIndex | None = field(default=None, init=False)
    _embedder: Embedder | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def prepare(self) -> None:
        """Read the passages and their word index or vectors.

        :raises DomainError: ``vectors_missing``; errors of opening the embedder."""
        self._passages = passages = load_passages(self.corpus)
        if self.retriever is not Retriever.VECTORS:
            _ = passages.words
        if self.choice is not None:
            self._embedder = embedder_of(self.choice)
            cached = _cached_vectors(self._embedder.space, passages.texts)
            missing = len(passages.texts) - len(cached)
            if missing:
                raise DomainError("vectors_missing", corpus=str(self.corpus), missing=missing)
            self._vectors = VectorIndex([cached[text] for text in passages.texts])

    def search(self, text: str, k: int) -> tuple[ContextSpec, ...]:
        """Return the best passages for a question. Thread-safe.

        :raises AskFailed: if the question cannot be embedded."""
        passages = self._passages
        if passages is None:
            raise ValueError("the corpus is not prepared")
        vector = self._embed(text) if self._embedder else None
        words = None if self.retriever is Retriever.VECTORS else passages.words
        hits = rank_passages(self.retriever, k, words=words, vectors=self._vectors, text=text, vector=vector)
        return tuple(
            ContextSpec(passages.texts[hit.index], passages.ids[hit.index], hit.score, passages.sources[hit.index])
            for hit in hits
        )

    def _embed(self, text: str) -> Vector:
        assert self._embedder is not None  # noqa: S101  -- tells the type checker
        if reason := self._embedder.refuses(text):
            raise AskFailed(reason)
        # An embedder is not thread-safe.
        with self._lock, self._embedder as embedder:
            embedded = embedder.embed([text])
        if embedded.outcome is not Outcome.OK:
            raise AskFailed(str(embedded.outcome), outcome=Outcome(embedded.outcome))
        return embedded.vectors[0]


def open_corpus_search(project: int, name: str, retriever: str, embeddings: str) -> CorpusSearch:
    """Open the search in the corpus ``NAME@VERSION``.

    :raises DomainError: ``corpus_unknown``, ``embeddings_unknown``; ``no_local_model`` and the like."""
    try:
        corpus = get_corpus(project, name)
    except UnknownName as error:
        raise DomainError("corpus_unknown", corpus=name) from error
    retriever_kind = Retriever(retriever)
    try:
        choice = None if retriever_kind is Retriever.WORDS else choose_embedding(None, embeddings or LOCAL)
    except UnknownName as error:
        raise DomainError("embeddings_unknown", name=embeddings) from error
    return CorpusSearch(corpus, retriever_kind, choice)


def embed_corpus(
    corpus: Corpus, choice: EmbeddingChoice, on_progress: Callable[[int, int], None] = lambda done, of: None
) -> int:
    """Compute the missing vectors of a corpus; returns their number. Can be interrupted and repeated.

    ``on_progress`` receives the numbers of finished and of all texts.

    :raises DomainError: ``embedding_failed`` with the reason; errors of opening the embedder."""
    texts = load_passages(corpus).texts
    embedder = embedder_of(choice)
    if any(embedder.refuses(text) for text in texts):
        raise DomainError("embedding_failed", reason="language")
    cached = _cached_vectors(embedder.space, texts)
    missing = [text for text in texts if text not in cached]
    endpoint = Endpoint.objects.get(pk=choice.endpoint) if choice.endpoint else None
    calls = SingleCalls(endpoint, None, project_id=corpus.project_id) if endpoint else None
    done = len(cached)
    with embedder, calls or nullcontext():
        for batch in batches(missing):
            cache_vectors(embedder.space, dict(zip(batch, _embed_batch(embedder, calls, batch), strict=True)))
            done += len(batch)
            on_progress(done, len(texts))
    return len(missing)


def _embed_batch(embedder: Embedder, calls: SingleCalls | None, batch: Sequence[str]) -> Sequence[Vector]:
    earlier_outcomes: list[Outcome] = []
    rng = random.Random()
    while True:
        if calls is None:
            embedded = embedder.embed(batch)
        else:
            if calls.wait(time.monotonic() + _MAX_SLOT_WAIT_SECONDS, sum(map(len, batch)) * _TOKENS_PER_CHARACTER):
                raise DomainError("embedding_failed", reason="endpoint_busy")
            embedded = calls.run(lambda: embedder.embed(batch))
            calls.record_outcome(embedded.outcome, embedded.retry_after)
        outcome = Outcome(embedded.outcome)
        if outcome is Outcome.OK:
            return embedded.vectors
        decision = decide(outcome, len(earlier_outcomes) + 1, embedded.retry_after, rng, earlier=earlier_outcomes)
        earlier_outcomes.append(outcome)
        if not isinstance(decision, Retry):
            raise DomainError("embedding_failed", reason=str(outcome))
        time.sleep(decision.seconds)


def _cached_vectors(space: str, texts: Sequence[str]) -> dict[str, Vector]:
    vectors: dict[str, Vector] = {}
    for first in range(0, len(texts), _BATCH_SIZE):
        vectors |= cached_vectors(space, texts[first : first + _BATCH_SIZE])
    return vectors
