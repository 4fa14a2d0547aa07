"""Finds chunks in another version of their corpus: by position in an unchanged document, else by their words.

A new chunk replaces an old one if both share at least half of the shorter of them, ignoring white space. Without that
bound, a chunk that only ends in the first words of a relevant one would count as relevant."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from contrib.corpora.models import Chunk, Corpus, Document
from contrib.corpora.selectors import get_chunks

# Share of the shorter of two chunks.
MIN_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class ChunkMapping:
    """Mapping from old chunk ids to new ones, in order.

    ``lost`` are ids whose words the new version does not contain, ``unknown`` those that the old version does not
    contain."""

    chunks: Mapping[str, tuple[str, ...]]
    lost: tuple[str, ...]
    unknown: tuple[str, ...]

    def map_ids(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Return the new ids for these old ids, without duplicates."""
        return tuple(dict.fromkeys(new for old in ids for new in self.chunks.get(old, ())))


def map_chunks(ids: Collection[str], old: Corpus, new: Corpus) -> ChunkMapping:
    """Find chunks of one version in another version of the same corpus."""
    old_chunks = get_chunks(old, ids)
    names = {chunk.document.external_id for chunk in old_chunks.values()}
    documents = {new_document.external_id: new_document for new_document in new.documents.filter(external_id__in=names)}
    spans = _chunks_by_document(new, [new_document.pk for new_document in documents.values()])
    mapping: dict[str, tuple[str, ...]] = {}
    for old_id, chunk in old_chunks.items():
        document = documents.get(chunk.document.external_id)
        span = _find_span(chunk, document) if document else None
        if document is not None and span is not None:
            mapping[old_id] = tuple(_overlapping_chunks(document.text, span, spans.get(document.pk, ())))
    # Text that moved to another document keeps its id.
    missing = [old_id for old_id in old_chunks if not mapping.get(old_id)]
    same_ids = get_chunks(new, missing)
    mapping |= {old_id: (old_id,) for old_id in missing if old_id in same_ids}
    return ChunkMapping(
        {old_id: ids for old_id, ids in mapping.items() if ids},
        lost=tuple(sorted(old_id for old_id in old_chunks if not mapping.get(old_id))),
        unknown=tuple(sorted(set(ids) - old_chunks.keys())),
    )


Span = tuple[int, int, str]


def _chunks_by_document(corpus: Corpus, documents: Sequence[int]) -> dict[int, list[Span]]:
    rows = Chunk.objects.filter(corpus=corpus, document__in=documents).order_by("position")
    spans: dict[int, list[Span]] = {}
    for document, start, end, chunk_id in rows.values_list("document_id", "start", "end", "chunk_id"):
        spans.setdefault(document, []).append((start, end, chunk_id))
    return spans


def _find_span(chunk: Chunk, document: Document) -> tuple[int, int] | None:
    """Return the chunk's span in the new document: unchanged if the document is, else that of its first occurrence."""
    if chunk.document.content_hash == document.content_hash:
        return chunk.start, chunk.end
    start = document.text.find(chunk.text)
    return None if start < 0 else (start, start + len(chunk.text))


def _overlapping_chunks(text: str, span: tuple[int, int], chunks: Sequence[Span]) -> Iterator[str]:
    start, end = span
    ends = [chunk_end for _, chunk_end, _ in chunks]
    for first, last, chunk_id in chunks[bisect_left(ends, start + 1) :]:
        if first >= end:
            return
        shared = _letter_count(text[max(first, start) : min(last, end)])
        if shared and shared >= MIN_SHARE * min(_letter_count(text[first:last]), _letter_count(text[start:end])):
            yield chunk_id


def _letter_count(text: str) -> int:
    return sum(map(len, text.split()))
