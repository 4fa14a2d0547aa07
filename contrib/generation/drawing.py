"""Which passages of a corpus are asked about: drawn by a seed, each with those that it is linked to by its words."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from contrib.corpora.models import Chunk, Corpus
from contrib.generation.kinds import KINDS, Kind
from contrib.generation.models import Generation

SHORTEST_PASSAGE = 80  # characters that say something to ask for
_LOOKED_AT = 10  # passages, the most alike first, among which linked ones are looked for
Search = Callable[[str, int], Sequence[tuple[str, float]]]
"""Finds so many passages for a text: their ids and scores, the best first."""


@dataclass(frozen=True, slots=True)
class Place:
    """The ``number``-th place that is asked about: a kind of question over its passages, the drawn one first. It is
    ``linked`` where there are as many as the kind needs."""

    number: int
    kind: Kind
    chunks: tuple[Chunk, ...]

    @property
    def linked(self) -> bool:
        """Whether questions can be asked over it."""
        return len(self.chunks) == self.kind.passages

    @property
    def texts(self) -> list[str]:
        """Of its passages."""
        return [chunk.text for chunk in self.chunks]

    @property
    def ids(self) -> list[str]:
        """Of its passages."""
        return [chunk.chunk_id for chunk in self.chunks]


def long_enough(chunks: Iterable[Chunk]) -> list[Chunk]:
    """The passages that can be asked about."""
    return [chunk for chunk in chunks if len(chunk.text.strip()) >= SHORTEST_PASSAGE]


def passages_of(corpus: Corpus) -> dict[str, Chunk]:
    """The distinct passages of a corpus in order, each under its first id, as they are searched."""
    found: dict[str, Chunk] = {}
    for chunk in Chunk.objects.filter(corpus=corpus).select_related("document").order_by("position"):
        found.setdefault(chunk.content_hash, chunk)
    return {chunk.chunk_id: chunk for chunk in found.values()}


def draw(generation: Generation, passages: dict[str, Chunk], search: Search) -> list[Place]:
    """The places of a generation, the same at every call. Kinds take turns; no passage is drawn twice."""
    rng = random.Random(generation.seed)
    anchors = rng.sample(open_ := long_enough(passages.values()), min(generation.passages, len(open_)))
    kinds = [KINDS[name] for name in generation.kinds]
    places = []
    for number, anchor in enumerate(anchors):
        kind = kinds[number % len(kinds)]
        places.append(Place(number, kind, (anchor, *_linked(anchor, kind.passages - 1, passages, search))))
    return places


def _linked(anchor: Chunk, wanted: int, passages: dict[str, Chunk], search: Search) -> list[Chunk]:
    """The passages with most of the anchor's rare words, those of other documents first."""
    if not wanted:
        return []
    found = [passages[chunk_id] for chunk_id, _ in search(anchor.text, _LOOKED_AT)]
    others = [chunk for chunk in long_enough(found) if chunk.pk != anchor.pk]
    return sorted(others, key=lambda chunk: chunk.document_id == anchor.document_id)[:wanted]
