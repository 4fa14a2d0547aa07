"""Clients of judge versions, the keys of their endpoints, the operator's table of prices, and the embeddings a run
uses: chosen once when it is made, opened when it works, kept by content hash. And finding out before any work how a
judge can be asked, and pinning it for the whole of that work.

Keys at rest are encrypted under the site's secret with AES-256-GCM (NIST SP 800-38D) and a random 96-bit nonce; the key
of the cipher comes from the secret by HKDF-SHA256 (RFC 5869). The origin is associated data: a sealed key copied to
another origin does not open.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db.models.functions import Now

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused, UnknownName
from evaluation.embedding.client import EndpointEmbedder
from evaluation.embedding.similarity import (
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
from evaluation.extensions import LocalModels, local_models, require
from evaluation.judging.baseline import BaselineJudge
from evaluation.judging.calls import SHIPPED, JudgeClient, JudgeReply, PriceTable, cost_of, read_prices, reply_words
from evaluation.judging.client import OpenAIJudge
from evaluation.judging.probing import NO_LOGPROBS, NO_RUNG, Probe, Probed, probe
from evaluation.models import Endpoint, JudgeVersion, KeptVector
from evaluation.network.origins import Origin, origin_of
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import LONGEST_WAIT_IN_WORKER, Defer, Retry, decide
from evaluation.network.transport import Deadlines
from evaluation.work.database import retry_on_db_error
from evaluation.work.shares import SingleCalls

_VERSION = "1"
_NONCE_BYTES = 12
_PURPOSE = b"concord: keys of endpoints"


def seal(key: str, *, origin: Origin | str, secret: str) -> str:
    """The key as text that only this secret opens, and only for this origin; or any text, for what it is about."""
    nonce = os.urandom(_NONCE_BYTES)
    sealed = nonce + _cipher(secret).encrypt(nonce, key.encode(), str(origin).encode())
    return f"{_VERSION}.{base64.urlsafe_b64encode(sealed).decode()}"


def unseal(sealed: str, *, origin: Origin | str, secrets: Sequence[str]) -> str:
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


_KEY_VARIABLE = re.compile(r"CONCORD_KEY_[A-Z0-9_]{1,80}")


def may_hold_key(variable: str) -> bool:
    """Whether an endpoint may name this environment variable as its key, or names none. Of any other, whoever enters
    endpoints could have the signing key or the database's password sent to a server whose traffic they read."""
    return not variable or bool(_KEY_VARIABLE.fullmatch(variable))


def key_of(endpoint: Endpoint) -> str:
    """What is sent as the bearer token; empty where the endpoint wants none. A stored key comes before a named one.

    :raises Refused: ``key_unreadable`` where the stored key was sealed under another secret or for another origin,
        ``key_missing`` where the environment variable that holds it is empty, ``key_name`` where it is none for keys.
    """
    if endpoint.sealed_key:
        secrets = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
        return unseal(endpoint.sealed_key, origin=origin_of(endpoint.base_url), secrets=secrets)
    if not may_hold_key(endpoint.key_env):
        raise Refused("key_name", variable=endpoint.key_env)
    key = os.environ.get(endpoint.key_env, "") if endpoint.key_env else ""
    if endpoint.key_env and not key:
        raise Refused("key_missing", variable=endpoint.key_env)
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
    return OpenAIJudge(**_reach(judge.endpoint))


def _reach(endpoint: Endpoint) -> dict[str, Any]:
    """What a client needs to call the endpoint."""
    return {
        "base_url": endpoint.base_url,
        "key": key_of(endpoint),
        "allowed_origins": tuple(settings.CONCORD_JUDGE_ORIGINS),
        "deadlines": Deadlines(total=settings.CONCORD_CALL_SECONDS),
        "azure": endpoint.azure_api_version,
    }


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
    return EndpointEmbedder(model=choice.model, **_reach(endpoint))


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


_RAW_SHOWN = 300
_KEPT = ("http_status", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning")  # of a reply


class Pins(Protocol):
    """Where one judge's preflight is written down; ``run_id`` is the run it is for, if it is for one."""

    @property
    def run_id(self) -> int | None: ...

    def tries(self) -> int:
        """How many tries there were since a person began the work."""

    def keep(self, found: Probed, wait: float | None) -> None:
        """Write down what was found; ``wait`` is in seconds until the judge may be tried again."""

    def stop(self, reason: str) -> None:
        """Stop the work until a person has seen to it."""


def pin(
    judge: JudgeVersion,
    pins: Pins,
    deadline: float,
    rng: random.Random,
    alive: Callable[[], None] = lambda: None,
) -> bool:
    """Whether the judge, which has an endpoint, is pinned now; where it is not, the work was stopped or has to wait.
    ``deadline`` is in monotonic seconds; ``alive`` is called about once a second while one waits."""
    if judge.endpoint is None:
        raise ValueError("a judge without an endpoint is not checked")
    with SingleCalls(judge.endpoint, pins.run_id, alive, project_id=judge.project_id) as calls:
        return _tried(judge, pins, deadline, rng, calls)


def _tried(judge: JudgeVersion, pins: Pins, deadline: float, rng: random.Random, calls: SingleCalls) -> bool:
    tries = retry_on_db_error(pins.tries)
    while time.monotonic() < deadline:
        try:
            client = client_of(judge)
        except Refused as refused:
            retry_on_db_error(partial(pins.stop, refused.code))
            return False
        if calls.wait(deadline):
            return False
        found = probed(client, judge, calls)
        tries += 1
        wait = _wait(found, tries, rng)
        retry_on_db_error(partial(pins.keep, found, wait))
        if found.outcome == Outcome.OK:
            return True
        if wait is None:
            retry_on_db_error(partial(pins.stop, found.reason))
            return False
        if wait > LONGEST_WAIT_IN_WORKER or time.monotonic() + wait > deadline:
            return False
        time.sleep(wait)
    return False


def probed(client: JudgeClient, judge: JudgeVersion, calls: SingleCalls) -> Probed:
    """The few calls that tell how the judge can be asked, with a rest that it asks for kept by everybody."""

    async def asked() -> Probed:
        async with client as opened:
            return await probe(opened, judge.model, judge.params, expects=judge.expects)

    found = calls.make(lambda: asyncio.run(asked()))
    calls.heard(found.last.outcome, found.last.retry_after)
    return found


def pinned_columns(
    judge: JudgeVersion, found: Probed, wait: float | None, beside: Sequence[object] = ()
) -> dict[str, Any]:
    """The columns of a ``PreflightRow``; ``beside`` goes into the hash of the judge as pinned with what was found."""
    good = found.outcome == Outcome.OK
    pinned = [judge.content_hash, str(found.rung), found.last.model_returned, *beside]
    return {
        "judge_version": judge,
        "outcome": found.outcome,
        "rung": str(found.rung) if found.rung else "",
        "judge_hash": content_hash(pinned) if good else "",
        "model_returned": found.last.model_returned,
        "fingerprint": found.last.fingerprint,
        "usage": found.tells_usage if good else None,
        "logprobs": found.logprobs,
        "calls": len(found.probes),
        "cost": cost_of_all(judge, [one.reply for one in found.probes]),
        "retry_at": Now() + timedelta(seconds=wait) if wait else None,
        "detail": [_told(judge, one) for one in found.probes],
    }


def cost_of_all(judge: JudgeVersion, replies: Sequence[JudgeReply]) -> Decimal | None:
    """US dollars of some calls; ``None`` where that of one is unknown."""
    costs = [cost_of(judge.model, reply, table=price_table()) for reply in replies]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None


def _wait(found: Probed, tries: int, rng: random.Random) -> float | None:
    """Seconds until the judge may be tried again; ``None`` where nothing is to be tried again."""
    if found.outcome in {Outcome.OK, NO_RUNG, NO_LOGPROBS}:
        return None
    outcome = Outcome(found.outcome)
    decision = decide(outcome, tries, found.last.retry_after, rng, earlier=[outcome] * (tries - 1))
    return decision.seconds if isinstance(decision, Retry | Defer) else None


def _told(judge: JudgeVersion, one: Probe) -> dict[str, object]:
    """One call as it is kept; its text only where it was no verdict."""
    reply, cost = one.reply, cost_of_all(judge, [one.reply])
    told: dict[str, object] = {
        "rung": one.rung,
        "logprobs_asked": one.asked_logprobs,
        "outcome": one.outcome,
        **{name: getattr(reply, name) for name in _KEPT},
        "cost": None if cost is None else str(cost),
    }
    if one.outcome is Outcome.OK:
        return told
    return {**told, "said": reply_words(reply), "raw": reply.raw[:_RAW_SHOWN]}
