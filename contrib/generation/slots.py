"""Draws the passages of a corpus that questions are about, by a seed, with related passages for multi-hop kinds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from contrib.corpora.models import Chunk, Corpus
from contrib.generation.kinds import KINDS, QuestionKind
from contrib.generation.models import Generation

# Minimum length in characters; shorter passages say too little.
MIN_PASSAGE_LENGTH = 80
# Most similar passages among which related ones are searched.
_SEARCH_DEPTH = 10
Search = Callable[[str, int], Sequence[tuple[str, float]]]
"""Finds so many passages for a text: their ids and scores, the best first."""


@dataclass(frozen=True, slots=True)
class PassageSlot:
    """The ``number``-th slot: a kind of question with its passages, the drawn one first."""

    number: int
    kind: QuestionKind
    chunks: tuple[Chunk, ...]

    @property
    def is_complete(self) -> bool:
        """Return whether it has as many passages as its kind needs."""
        return len(self.chunks) == self.kind.passages

    @property
    def texts(self) -> list[str]:
        return [chunk.text for chunk in self.chunks]

    @property
    def ids(self) -> list[str]:
        return [chunk.chunk_id for chunk in self.chunks]


def eligible_passages(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the passages that are long enough to ask about."""
    return [chunk for chunk in chunks if len(chunk.text.strip()) >= MIN_PASSAGE_LENGTH]


def distinct_passages(corpus: Corpus) -> dict[str, Chunk]:
    """Return the distinct passages of a corpus in order, by their first id."""
    by_hash: dict[str, Chunk] = {}
    for chunk in Chunk.objects.filter(corpus=corpus).select_related("document").order_by("position"):
        by_hash.setdefault(chunk.content_hash, chunk)
    return {chunk.chunk_id: chunk for chunk in by_hash.values()}


def draw_slots(generation: Generation, passages: dict[str, Chunk], search: Search) -> list[PassageSlot]:
    """Draw the slots of a generation; deterministic. Kinds alternate, and no passage is drawn twice."""
    rng = random.Random(generation.seed)
    anchors = rng.sample(eligible := eligible_passages(passages.values()), min(generation.passages, len(eligible)))
    kinds = [KINDS[name] for name in generation.kinds]
    slots = []
    for number, anchor in enumerate(anchors):
        kind = kinds[number % len(kinds)]
        slots.append(
            PassageSlot(number, kind, (anchor, *_linked_passages(anchor, kind.passages - 1, passages, search)))
        )
    return slots


def _linked_passages(anchor: Chunk, count: int, passages: dict[str, Chunk], search: Search) -> list[Chunk]:
    """Return the passages that share most rare words with the anchor, those of other documents first."""
    if not count:
        return []
    hits = [passages[chunk_id] for chunk_id, _ in search(anchor.text, _SEARCH_DEPTH)]
    candidates = [chunk for chunk in eligible_passages(hits) if chunk.pk != anchor.pk]
    return sorted(candidates, key=lambda chunk: chunk.document_id == anchor.document_id)[:count]
