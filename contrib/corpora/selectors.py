"""What was named: a corpus, its chunks by their ids, and where a chunk stands."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from contrib.corpora.coverage import newest_corpora
from contrib.corpora.models import Chunk, Corpus
from evaluation.core.errors import UnknownName
from evaluation.models import Project

_AT_ONCE = 500  # ids of one statement


def corpus_named(project: Project | int, name: str) -> Corpus:
    """The newest version of a corpus, or ``NAME@VERSION``.

    :raises UnknownName: when the project has no such corpus.
    """
    plain, _, version = name.rpartition("@")
    rows = Corpus.objects.filter(project=project).order_by("-version")
    found = rows.filter(name=plain, version=int(version)).first() if version.isdigit() and plain else None
    found = found or rows.filter(name=name).first()
    if found is None:
        raise UnknownName("corpus", name, list(rows.order_by("name").values_list("name", flat=True).distinct()))
    return found


def chunks_named(corpus: Corpus, ids: Collection[str]) -> dict[str, Chunk]:
    """The chunks with these ids, with their documents; ids that the corpus does not have are left out."""
    wanted = list(dict.fromkeys(ids))
    rows = Chunk.objects.filter(corpus=corpus).select_related("document")
    parts = (wanted[first : first + _AT_ONCE] for first in range(0, len(wanted), _AT_ONCE))
    return {chunk.chunk_id: chunk for part in parts for chunk in rows.filter(chunk_id__in=part)}


def passage_texts(project_id: int, ids: Sequence[str]) -> dict[str, str]:
    """The texts of the chunks with these ids in the newest versions of the project's corpora."""
    corpora = list(newest_corpora().filter(project=project_id).values_list("pk", flat=True))
    found: dict[str, str] = {}
    for first in range(0, len(ids), _AT_ONCE):
        rows = Chunk.objects.filter(corpus__in=corpora, chunk_id__in=ids[first : first + _AT_ONCE])
        found |= dict(rows.values_list("chunk_id", "text"))
    return found


def neighbours(chunk: Chunk) -> tuple[Chunk | None, Chunk | None]:
    """The chunks before and after it in its document."""
    beside = Chunk.objects.filter(document_id=chunk.document_id, position__in=[chunk.position - 1, chunk.position + 1])
    found = {one.position: one for one in beside}
    return found.get(chunk.position - 1), found.get(chunk.position + 1)
