"""Embeddings of a run: chosen at creation, opened by the worker, cached by content hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evaluation.core.errors import DomainError, UnknownName
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
from evaluation.models import CachedEmbedding, Endpoint, JudgeVersion


def cached_vectors(space: str, texts: Iterable[str]) -> dict[str, Vector]:
    """Cached embeddings of the texts in the space, by text."""
    hashes = {text: text_hash(text) for text in texts}
    rows = CachedEmbedding.objects.filter(space=space, text_hash__in=set(hashes.values()))
    by_hash = {digest: from_bytes(bytes(vector)) for digest, vector in rows.values_list("text_hash", "vector")}
    return {text: by_hash[digest] for text, digest in hashes.items() if digest in by_hash}


def cache_vectors(space: str, vectors: Mapping[str, Vector]) -> None:
    """Cache embeddings by text; rows stored by other workers stay unchanged."""
    rows = {text_hash(text): vector for text, vector in vectors.items()}
    CachedEmbedding.objects.bulk_create(
        (CachedEmbedding(space=space, text_hash=digest, vector=to_bytes(vector)) for digest, vector in rows.items()),
        ignore_conflicts=True,
    )


_FEATURE = "local_embeddings"


def choose_embedding(judge: JudgeVersion | None, requested: str = "") -> EmbeddingChoice | None:
    """Embeddings by endpoint name, ``local`` or ``none``.

    By default: the judge's own endpoint if it embeds, else the first embedding endpoint by name, else the local model,
    else ``None``.

    :raises UnknownName: for a name that no embedding endpoint has.
    :raises DomainError: ``local_model_unreadable`` for a folder without a model; ``no_local_model`` and ``feature_off``
    if the local model is requested but unavailable."""
    if requested == NONE:
        return None
    endpoints = Endpoint.objects.exclude(embedding_model="").order_by("name")
    endpoint = None
    if requested and requested != LOCAL:
        endpoint = endpoints.filter(name=requested).first()
        if endpoint is None:
            raise UnknownName("embedding endpoint", requested, [LOCAL, NONE, *endpoints.values_list("name", flat=True)])
    elif not requested:
        judge_endpoint = judge.endpoint if judge else None
        endpoint = judge_endpoint if judge_endpoint and judge_endpoint.embedding_model else endpoints.first()
    if endpoint is not None:
        return EmbeddingChoice(endpoint=endpoint.pk, model=endpoint.embedding_model)
    if requested == LOCAL:
        require(_FEATURE)
    local = local_models()
    choice = local.choose_embedding() if local else None
    if choice is None and requested == LOCAL:
        raise DomainError("no_local_model")
    return choice


def choose_token_model() -> TokenChoice | None:
    """Local model, layer and baseline of BERTScore; ``None`` without a local model.

    :raises DomainError: ``local_model_unreadable``; ``no_such_layer`` for a layer that the model does not have."""
    local = local_models()
    return local.choose_token_model() if local else None


def embedder_of(choice: EmbeddingChoice) -> Embedder:
    """Embedder of a run, a context manager.

    :raises DomainError: ``origin_not_allowed``, ``key_missing``, ``key_unreadable``, ``embedding_changed`` if the
    endpoint's model or the local files have changed, ``local_model_unreadable``, ``semantic_not_installed`` and
    ``feature_off`` for a local model."""
    if choice.endpoint is None:
        return _require_local_models().open_embedder(choice)
    endpoint = Endpoint.objects.get(pk=choice.endpoint)
    if endpoint.embedding_model != choice.model:
        raise DomainError("embedding_changed")
    return EndpointEmbedder(model=choice.model, azure=endpoint.azure_api_version, **connection(endpoint))


def token_model(choice: TokenChoice) -> TokenModel:
    """Token model of a run.

    :raises DomainError: as :func:`embedder_of` for a local model."""
    return _require_local_models().open_token_model(choice)


def _require_local_models() -> LocalModels:
    models = local_models()
    if models is None:
        raise DomainError("feature_off", feature=_FEATURE)
    return models
