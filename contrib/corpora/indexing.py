"""The passages of a corpus as they are searched: read once by a process and kept, the last few corpora of it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

from contrib.corpora.models import Chunk, Corpus
from contrib.corpora.searching import Retriever, WordIndex, found_by

_KEPT = 2  # corpora of a process; 20,000 chunks of 600 characters take some 100 MB
_corpora: OrderedDict[tuple[int, str], Passages] = OrderedDict()
_lock = Lock()


@dataclass(frozen=True)
class Passages:
    """The distinct texts of a corpus, each under the first id that has it, and the title of its document."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    sources: tuple[str, ...]

    @cached_property
    def words(self) -> WordIndex:
        """The texts by their words, indexed when they are first searched."""
        return WordIndex(self.texts)


def passages_of(corpus: Corpus) -> Passages:
    """The passages of a version, which never change."""
    key = (corpus.pk, corpus.content_hash)
    with _lock:
        found = _corpora.pop(key, None) or _read(corpus.pk)
        _corpora[key] = found
        while len(_corpora) > _KEPT:
            _corpora.popitem(last=False)
    return found


def _read(corpus_id: int) -> Passages:
    columns = ("chunk_id", "text", "content_hash", "document__title", "document__external_id")
    rows = Chunk.objects.filter(corpus_id=corpus_id).order_by("position").values_list(*columns)
    seen: dict[str, tuple[str, str, str]] = {}
    for chunk_id, text, digest, title, document in rows.iterator(chunk_size=2_000):
        seen.setdefault(digest, (chunk_id, text, title or document))
    ids, texts, sources = zip(*seen.values(), strict=True) if seen else ((), (), ())
    return Passages(ids, texts, sources)


def search(corpus: Corpus, text: str, most: int) -> list[tuple[str, float]]:
    """Ids of the chunks that share words with a text, and their scores, the best first."""
    found = passages_of(corpus)
    hits = found_by(Retriever.WORDS, most, words=found.words, vectors=None, text=text, vector=None)
    return [(found.ids[hit.place], hit.score) for hit in hits]
