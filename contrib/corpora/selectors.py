"""Lookups of corpora and chunks by name and id."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from contrib.corpora.coverage import newest_corpora
from contrib.corpora.models import Chunk, Corpus
from evaluation.core.errors import UnknownName
from evaluation.models import Project

# Ids in one SQL statement.
_BATCH_SIZE = 500


def get_corpus(project: Project | int, name: str) -> Corpus:
    """Return the newest version of a corpus, or ``NAME@VERSION``.

    :raises UnknownName: if the project has no such corpus."""
    base_name, _, version = name.rpartition("@")
    rows = Corpus.objects.filter(project=project).order_by("-version")
    corpus = rows.filter(name=base_name, version=int(version)).first() if version.isdigit() and base_name else None
    corpus = corpus or rows.filter(name=name).first()
    if corpus is None:
        raise UnknownName("corpus", name, list(rows.order_by("name").values_list("name", flat=True).distinct()))
    return corpus


def get_chunks(corpus: Corpus, ids: Collection[str]) -> dict[str, Chunk]:
    """Return the chunks with these ids, with their documents; unknown ids are left out."""
    unique_ids = list(dict.fromkeys(ids))
    rows = Chunk.objects.filter(corpus=corpus).select_related("document")
    batches = (unique_ids[first : first + _BATCH_SIZE] for first in range(0, len(unique_ids), _BATCH_SIZE))
    return {chunk.chunk_id: chunk for batch in batches for chunk in rows.filter(chunk_id__in=batch)}


def passage_texts(project_id: int, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of the chunks with these ids, in the newest versions of the project's corpora."""
    corpora = list(newest_corpora().filter(project=project_id).values_list("pk", flat=True))
    texts: dict[str, str] = {}
    for first in range(0, len(ids), _BATCH_SIZE):
        rows = Chunk.objects.filter(corpus__in=corpora, chunk_id__in=ids[first : first + _BATCH_SIZE])
        texts |= dict(rows.values_list("chunk_id", "text"))
    return texts


def neighbours(chunk: Chunk) -> tuple[Chunk | None, Chunk | None]:
    """Return the previous and the next chunk of the document."""
    rows = Chunk.objects.filter(document_id=chunk.document_id, position__in=[chunk.position - 1, chunk.position + 1])
    by_position = {neighbour.position: neighbour for neighbour in rows}
    return by_position.get(chunk.position - 1), by_position.get(chunk.position + 1)
