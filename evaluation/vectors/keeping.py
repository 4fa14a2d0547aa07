"""Looking up and keeping embeddings by content hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evaluation.embedding.protocol import Vector, from_bytes, text_hash, to_bytes
from evaluation.models import KeptVector


def kept_vectors(space: str, texts: Iterable[str]) -> dict[str, Vector]:
    """The embeddings of those texts that are known in the space, by text."""
    hashes = {text: text_hash(text) for text in texts}
    rows = KeptVector.objects.filter(space=space, text_hash__in=set(hashes.values()))
    known = {digest: from_bytes(bytes(vector)) for digest, vector in rows.values_list("text_hash", "vector")}
    return {text: known[digest] for text, digest in hashes.items() if digest in known}


def keep_vectors(space: str, vectors: Mapping[str, Vector]) -> None:
    """Keep embeddings by text; what another worker kept meanwhile stays as it is."""
    rows = {text_hash(text): vector for text, vector in vectors.items()}
    KeptVector.objects.bulk_create(
        (KeptVector(space=space, text_hash=digest, vector=to_bytes(vector)) for digest, vector in rows.items()),
        ignore_conflicts=True,
    )
