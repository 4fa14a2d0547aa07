"""Clients of judge versions, the keys of their endpoints, the operator's table of prices, and the embeddings a run
uses: chosen once when it is made, opened when it works, kept by content hash.

Keys at rest are encrypted under the site's secret with AES-256-GCM (NIST SP 800-38D) and a random 96-bit nonce; the key
of the cipher comes from the secret by HKDF-SHA256 (RFC 5869). The origin is associated data: a sealed key copied to
another origin does not open.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from evaluation.core.errors import Refused, UnknownName
from evaluation.embedding.client import EndpointEmbedder
from evaluation.embedding.protocol import (
    LOCAL,
    NONE,
    Embedder,
    EmbeddingChoice,
    TokenChoice,
    Vector,
    from_bytes,
    text_hash,
    to_bytes,
)
from evaluation.embedding.similarity import TokenModel
from evaluation.judging.baseline import BaselineJudge
from evaluation.judging.calls import JudgeClient
from evaluation.judging.client import OpenAIJudge
from evaluation.judging.origins import Origin, origin_of
from evaluation.judging.pricing import SHIPPED, PriceTable, read_prices
from evaluation.judging.transport import Deadlines
from evaluation.models import Endpoint, JudgeVersion, KeptVector
from evaluation.work.plugins import LocalModels, local_models, require

_VERSION = "1"
_NONCE_BYTES = 12
_PURPOSE = b"concord: keys of endpoints"


def seal(key: str, *, origin: Origin, secret: str) -> str:
    """The key as text that only this secret opens, and only for this origin."""
    nonce = os.urandom(_NONCE_BYTES)
    sealed = nonce + _cipher(secret).encrypt(nonce, key.encode(), str(origin).encode())
    return f"{_VERSION}.{base64.urlsafe_b64encode(sealed).decode()}"


def unseal(sealed: str, *, origin: Origin, secrets: Sequence[str]) -> str:
    """The key, by the first of the secrets that opens it: the site's own, then those it used before.

    :raises Refused: ``key_unreadable`` for another origin, another secret or damaged text.
    """
    version, _, text = sealed.partition(".")
    try:
        raw = base64.b64decode(text, altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise Refused("key_unreadable") from error
    if version == _VERSION and len(raw) > _NONCE_BYTES:
        for secret in secrets:
            try:
                return _cipher(secret).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], str(origin).encode()).decode()
            except InvalidTag:  # not this secret, or not this origin: the next secret may open it
                continue
    raise Refused("key_unreadable")


def _cipher(secret: str) -> AESGCM:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret.encode())
    return AESGCM(derived)


def key_of(endpoint: Endpoint) -> str:
    """What is sent as the bearer token; empty where the endpoint wants none. A stored key comes before a named one.

    :raises Refused: ``key_unreadable`` where the stored key was sealed under another secret or for another origin,
        ``key_missing`` where the environment variable that holds it is empty.
    """
    if endpoint.sealed_key:
        secrets = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
        return unseal(endpoint.sealed_key, origin=origin_of(endpoint.base_url), secrets=secrets)
    name = endpoint.key_env
    key = os.environ.get(name, "") if name else ""
    if name and not key:
        raise Refused("key_missing", variable=name)
    return key


def store_key(endpoint: Endpoint, key: str) -> None:
    """Seal the key for the endpoint's present origin, or forget the stored one where it is empty. Saving is the
    caller's."""
    origin = origin_of(endpoint.base_url)
    endpoint.sealed_key = seal(key, origin=origin, secret=settings.SECRET_KEY) if key else ""


def client_of(judge: JudgeVersion) -> JudgeClient:
    """A client to be used as an asynchronous context manager.

    :raises Refused: ``origin_not_allowed`` where the endpoint's origin is not on the allow-list,
        ``key_missing`` and ``key_unreadable`` of its key.
    """
    if judge.endpoint is None:
        return BaselineJudge()
    return OpenAIJudge(
        base_url=judge.endpoint.base_url,
        key=key_of(judge.endpoint),
        allowed_origins=tuple(settings.CONCORD_JUDGE_ORIGINS),
        deadlines=Deadlines(total=settings.CONCORD_CALL_SECONDS),
    )


def price_table() -> PriceTable:
    """The file that ``CONCORD_PRICES`` names, read once per process; without one the shipped table, which is empty.

    :raises InvalidFile: for a file that is no table of prices.
    :raises OSError: for a file that cannot be read.
    """
    return _read(settings.CONCORD_PRICES)


@cache
def _read(path: str) -> PriceTable:
    return read_prices(Path(path) if path else SHIPPED)


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
    endpoint = None if wanted == LOCAL else _endpoint(judge, wanted)
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
    return EndpointEmbedder(
        base_url=endpoint.base_url,
        model=choice.model,
        key=key_of(endpoint),
        allowed_origins=tuple(settings.CONCORD_JUDGE_ORIGINS),
        deadlines=Deadlines(total=settings.CONCORD_CALL_SECONDS),
    )


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


def _endpoint(judge: JudgeVersion | None, wanted: str) -> Endpoint | None:
    embedding = Endpoint.objects.exclude(embedding_model="").order_by("name")
    if not wanted:
        own = judge.endpoint if judge and judge.endpoint and judge.endpoint.embedding_model else None
        return own or embedding.first()
    found = embedding.filter(name=wanted).first()
    if found is None:
        raise UnknownName("embedding endpoint", wanted, [LOCAL, NONE, *embedding.values_list("name", flat=True)])
    return found
