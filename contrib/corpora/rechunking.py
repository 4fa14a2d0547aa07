"""Passages that are known to be relevant, in another version of their corpus: found by their place in the document, or,
where the document changed, by their words.

A chunk of the new version takes over from a known one where both share at least half of the shorter of them, white
space not counted. Without that bound a chunk that ends in the first words of a known one would count as relevant.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from contrib.corpora.models import Chunk, Corpus, Document
from contrib.corpora.selectors import chunks_named

LEAST_SHARE = 0.5  # of the shorter of two chunks


@dataclass(frozen=True, slots=True)
class Carried:
    """Where known chunks are in the new version: by old id the new ones, in order. ``lost`` are ids whose words the new
    version does not have, ``unknown`` those that the old version does not have."""

    chunks: Mapping[str, tuple[str, ...]]
    lost: tuple[str, ...]
    unknown: tuple[str, ...]

    def of(self, ids: Sequence[str]) -> tuple[str, ...]:
        """The ids in the new version that take over from some, each once."""
        return tuple(dict.fromkeys(new for old in ids for new in self.chunks.get(old, ())))


def carry(ids: Collection[str], old: Corpus, new: Corpus) -> Carried:
    """Find chunks of a version in another one of the same corpus."""
    known = chunks_named(old, ids)
    names = {chunk.document.external_id for chunk in known.values()}
    documents = {one.external_id: one for one in new.documents.filter(external_id__in=names)}
    spans = _chunks_by_document(new, [one.pk for one in documents.values()])
    found: dict[str, tuple[str, ...]] = {}
    for old_id, chunk in known.items():
        document = documents.get(chunk.document.external_id)
        place = _place(chunk, document) if document else None
        if document is not None and place is not None:
            found[old_id] = tuple(_taking_over(document.text, place, spans.get(document.pk, ())))
    # Words that moved to another document keep their id.
    missing = [old_id for old_id in known if not found.get(old_id)]
    stayed = chunks_named(new, missing)
    found |= {old_id: (old_id,) for old_id in missing if old_id in stayed}
    return Carried(
        {old_id: ids for old_id, ids in found.items() if ids},
        lost=tuple(sorted(old_id for old_id in known if not found.get(old_id))),
        unknown=tuple(sorted(set(ids) - known.keys())),
    )


Span = tuple[int, int, str]


def _chunks_by_document(corpus: Corpus, documents: Sequence[int]) -> dict[int, list[Span]]:
    rows = Chunk.objects.filter(corpus=corpus, document__in=documents).order_by("position")
    found: dict[int, list[Span]] = {}
    for document, start, end, chunk_id in rows.values_list("document_id", "start", "end", "chunk_id"):
        found.setdefault(document, []).append((start, end, chunk_id))
    return found


def _place(chunk: Chunk, document: Document) -> tuple[int, int] | None:
    """Where the chunk's words are now: at its own place where the document is the same, else where they first stand."""
    if chunk.document.content_hash == document.content_hash:
        return chunk.start, chunk.end
    start = document.text.find(chunk.text)
    return None if start < 0 else (start, start + len(chunk.text))


def _taking_over(text: str, place: tuple[int, int], chunks: Sequence[Span]) -> Iterator[str]:
    start, end = place
    ends = [chunk_end for _, chunk_end, _ in chunks]
    for first, last, chunk_id in chunks[bisect_left(ends, start + 1) :]:
        if first >= end:
            return
        shared = _letters(text[max(first, start) : min(last, end)])
        if shared and shared >= LEAST_SHARE * min(_letters(text[first:last]), _letters(text[start:end])):
            yield chunk_id


def _letters(text: str) -> int:
    return sum(map(len, text.split()))
