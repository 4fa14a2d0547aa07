"""Embeddings of a run: chosen once when it is made, opened when it works, kept by content hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evaluation.core.errors import Refused, UnknownName
from evaluation.extensions import LocalModels, local_models, require
from evaluation.judges.clients import connection
from evaluation.judging.embedding.client import EndpointEmbedder
from evaluation.judging.embedding.similarity import (
    LOCAL,
    NONE,
    Embedder,
    EmbeddingChoice,
    TokenChoice,
    TokenModel,
    Vector,
    from_bytes,
    text_hash,
    to_bytes,
)
from evaluation.models import Endpoint, JudgeVersion, KeptVector


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


_FEATURE = "local_embeddings"


def chosen_embedding(judge: JudgeVersion | None, wanted: str = "") -> EmbeddingChoice | None:
    """The endpoint of that name, ``local`` for the local model, ``none`` for no embeddings. Where nothing is wanted in
    particular: the judge's own endpoint where it embeds, else the first one that does by name, else the local model;
    ``None`` where there is neither.

    :raises UnknownName: for a name that no embedding endpoint has.
    :raises Refused: ``local_model_unreadable`` for a folder that holds no model; ``no_local_model`` and
        ``feature_off`` where it is wanted and not there.
    """
    if wanted == NONE:
        return None
    embedding = Endpoint.objects.exclude(embedding_model="").order_by("name")
    endpoint = None
    if wanted and wanted != LOCAL:
        endpoint = embedding.filter(name=wanted).first()
        if endpoint is None:
            raise UnknownName("embedding endpoint", wanted, [LOCAL, NONE, *embedding.values_list("name", flat=True)])
    elif not wanted:
        own = judge.endpoint if judge else None
        endpoint = own if own and own.embedding_model else embedding.first()
    if endpoint is not None:
        return EmbeddingChoice(endpoint=endpoint.pk, model=endpoint.embedding_model)
    if wanted == LOCAL:
        require(_FEATURE)
    local = local_models()
    found = local.chosen() if local else None
    if found is None and wanted == LOCAL:
        raise Refused("no_local_model")
    return found


def chosen_tokens() -> TokenChoice | None:
    """The local model, layer and baseline of BERTScore; ``None`` where there is no local model.

    :raises Refused: ``local_model_unreadable``; ``no_such_layer`` for a layer that the model does not have.
    """
    local = local_models()
    return local.chosen_tokens() if local else None


def embedder_of(choice: EmbeddingChoice) -> Embedder:
    """The embedder of a run, to be used as a context manager.

    :raises Refused: ``origin_not_allowed``, ``key_missing``, ``key_unreadable``, ``embedding_changed`` where the
        endpoint embeds with another model now or the local files are others, ``local_model_unreadable``,
        ``semantic_not_installed`` and ``feature_off`` of a local model.
    """
    if choice.endpoint is None:
        return _local().embedder(choice)
    endpoint = Endpoint.objects.get(pk=choice.endpoint)
    if endpoint.embedding_model != choice.model:
        raise Refused("embedding_changed")
    return EndpointEmbedder(model=choice.model, azure=endpoint.azure_api_version, **connection(endpoint))


def tokens_of(choice: TokenChoice) -> TokenModel:
    """The token model of a run.

    :raises Refused: as :func:`embedder_of` of a local model.
    """
    return _local().tokens(choice)


def _local() -> LocalModels:
    found = local_models()
    if found is None:
        raise Refused("feature_off", feature=_FEATURE)
    return found
