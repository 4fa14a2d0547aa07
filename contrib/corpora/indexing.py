"""Per-process cache of corpus passages with their word index."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

from contrib.corpora.models import Chunk, Corpus
from contrib.corpora.ranking import Retriever, WordIndex, rank_passages

# Corpora of a process: 20,000 chunks of 600 characters take about 100 MB.
_MAX_CACHED = 2
_corpora: OrderedDict[tuple[int, str], Passages] = OrderedDict()
_lock = Lock()


@dataclass(frozen=True)
class Passages:
    """The distinct texts of a corpus, each with its first chunk id and the title of its document."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    sources: tuple[str, ...]

    @cached_property
    def words(self) -> WordIndex:
        """Word index of the texts, built on first use."""
        return WordIndex(self.texts)


def load_passages(corpus: Corpus) -> Passages:
    """Return the passages of a version, cached because versions never change."""
    key = (corpus.pk, corpus.content_hash)
    with _lock:
        passages = _corpora.pop(key, None) or _read_passages(corpus.pk)
        _corpora[key] = passages
        while len(_corpora) > _MAX_CACHED:
            _corpora.popitem(last=False)
    return passages


def _read_passages(corpus_id: int) -> Passages:
    columns = ("chunk_id", "text", "content_hash", "document__title", "document__external_id")
    rows = Chunk.objects.filter(corpus_id=corpus_id).order_by("position").values_list(*columns)
    by_digest: dict[str, tuple[str, str, str]] = {}
    for chunk_id, text, digest, title, document in rows.iterator(chunk_size=2_000):
        by_digest.setdefault(digest, (chunk_id, text, title or document))
    ids, texts, sources = zip(*by_digest.values(), strict=True) if by_digest else ((), (), ())
    return Passages(ids, texts, sources)


def search_words(corpus: Corpus, text: str, limit: int) -> list[tuple[str, float]]:
    """Return ids and scores of the chunks that share words with a text, best first."""
    passages = load_passages(corpus)
    hits = rank_passages(Retriever.WORDS, limit, words=passages.words, vectors=None, text=text, vector=None)
    return [(passages.ids[hit.index], hit.score) for hit in hits]
