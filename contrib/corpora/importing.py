"""Imports documents as versions of a corpus, and compares two versions.

Equal content selects the existing version; other content creates the next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from django.db import transaction

from contrib.corpora.documents import SourceDocument
from contrib.corpora.models import Chunk, Corpus, Document
from contrib.corpora.splitting import Splitting, split
from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.canonical import clean_name, content_hash
from evaluation.core.errors import DomainError, Problem
from evaluation.judging.embedding.similarity import text_hash
from evaluation.models import Project, User

# Corpora are searched in memory.
MAX_CHUNKS = 200_000
# Hexadecimal digits of a chunk's hash that form its id.
ID_LENGTH = 32
_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class ImportedCorpus:
    """The version that holds the documents; ``note`` tells whether it was created or selected."""

    corpus: Corpus
    created: bool
    note: Problem


@dataclass(frozen=True, slots=True)
class CorpusDifference:
    """Ids of added, removed and changed documents, and numbers of added, removed and kept chunk ids."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    chunks_added: int
    chunks_removed: int
    chunks_kept: int


def corpus_hash(documents: Sequence[SourceDocument], splitting: Splitting) -> str:
    """Return the content hash of a corpus. Order of documents and metadata do not count."""
    contents = [
        [d.id, d.title, text_hash(d.text), None if d.passages is None else [[p.id, p.start, p.end] for p in d.passages]]
        for d in sorted(documents, key=lambda d: d.id)
    ]
    return content_hash([splitting.model_dump(mode="json"), contents])


def import_corpus(
    project: Project,
    name: str,
    documents: Sequence[SourceDocument],
    *,
    splitting: Splitting | None = None,
    by: User | None,
) -> ImportedCorpus:
    """Split and store documents in one transaction, or select the version with the same content.

    :raises DomainError: ``bad_name``, ``corpus_empty``, ``corpus_too_large``, ``document_twice``, ``chunk_twice``."""
    name, splitting = clean_name(name), splitting or Splitting()
    digest = corpus_hash(documents, splitting)
    versions = Corpus.objects.filter(project=project, name=name).order_by("-version")
    with transaction.atomic():
        lock_project(project.pk)
        newest = versions.first()
        if existing := versions.filter(content_hash=digest).first():
            code = "corpus_unchanged" if existing == newest else "corpus_selected"
            note = Problem(code, params={"corpus": str(existing), "newest": str(newest)})
            return ImportedCorpus(existing, False, note)
        corpus = Corpus.objects.create(
            project=project,
            name=name,
            version=newest.version + 1 if newest else 1,
            content_hash=digest,
            predecessor=newest,
            splitting=splitting.model_dump(mode="json"),
            created_by=by,
        )
        chunks = _store(corpus, documents, splitting)
        audit.record(by, "corpus.imported", corpus, hash=digest, documents=len(documents), chunks=chunks)
    params = {"corpus": str(corpus), "documents": len(documents), "chunks": chunks, "before": str(newest)}
    return ImportedCorpus(corpus, True, Problem("corpus_next_version" if newest else "corpus_created", params=params))


def _store(corpus: Corpus, documents: Sequence[SourceDocument], splitting: Splitting) -> int:
    """Insert documents and chunks; returns the number of chunks."""
    ids = [source.id for source in documents]
    if len(set(ids)) < len(ids):
        raise DomainError("document_twice", id=next(id_ for id_ in ids if ids.count(id_) > 1))
    rows = [
        Document(
            corpus=corpus,
            external_id=source.id,
            position=position,
            title=source.title,
            media=source.media,
            text=source.text,
            content_hash=text_hash(source.text),
            metadata=dict(source.metadata),
        )
        for position, source in enumerate(documents)
    ]
    chunks = list(_chunks(corpus, rows, documents, splitting))
    if not chunks:
        raise DomainError("corpus_empty")
    Document.objects.bulk_create(rows, batch_size=_BATCH)
    Chunk.objects.bulk_create(chunks, batch_size=_BATCH)
    return len(chunks)


def _chunks(
    corpus: Corpus, rows: Sequence[Document], documents: Sequence[SourceDocument], splitting: Splitting
) -> Iterator[Chunk]:
    used_ids: set[str] = set()
    position = 0
    for row, source in zip(rows, documents, strict=True):
        passages = source.passages
        spans = split(source.text, splitting) if passages is None else tuple((p.start, p.end) for p in passages)
        for index, (start, end) in enumerate(spans):
            if position == MAX_CHUNKS:
                raise DomainError("corpus_too_large", limit=MAX_CHUNKS)
            text = source.text[start:end]
            digest = text_hash(text)
            chunk_id = _unique_id(digest[:ID_LENGTH], used_ids) if passages is None else passages[index].id
            if chunk_id in used_ids:
                raise DomainError("chunk_twice", id=chunk_id)
            used_ids.add(chunk_id)
            yield Chunk(
                corpus=corpus,
                document=row,
                position=position,
                chunk_id=chunk_id,
                start=start,
                end=end,
                text=text,
                content_hash=digest,
            )
            position += 1


def _unique_id(base_id: str, used_ids: Collection[str]) -> str:
    """Return the id, with a suffix if the same text occurred before; a search returns the first."""
    number, candidate = 1, base_id
    while candidate in used_ids:
        number += 1
        candidate = f"{base_id}~{number}"
    return candidate


def difference(old: Corpus, new: Corpus) -> CorpusDifference:
    """Compare two versions by the ids of their documents and chunks."""
    before = dict(old.documents.values_list("external_id", "content_hash"))
    after = dict(new.documents.order_by("position").values_list("external_id", "content_hash"))
    old_chunks, new_chunks = (set(corpus.chunks.values_list("chunk_id", flat=True)) for corpus in (old, new))
    return CorpusDifference(
        added=tuple(id_ for id_ in after if id_ not in before),
        removed=tuple(id_ for id_ in before if id_ not in after),
        changed=tuple(id_ for id_, digest in after.items() if before.get(id_, digest) != digest),
        chunks_added=len(new_chunks - old_chunks),
        chunks_removed=len(old_chunks - new_chunks),
        chunks_kept=len(old_chunks & new_chunks),
    )
