"""Embeddings of an OpenAI-compatible endpoint. One call is one HTTP request; response bodies are validated."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np

from evaluation.core.canonical import content_hash
from evaluation.judging.embedding.similarity import EmbeddingResult, Vector
from evaluation.judging.providers.openai import read_error
from evaluation.network.outcomes import (
    MAX_TOKENS,
    Outcome,
    excerpt,
    read_count,
    read_json,
    replace_unstorable,
    without_secrets,
)
from evaluation.network.retrying import retry_after_seconds
from evaluation.network.transport import Deadlines, GuardedTransport, TransportFault

MAX_DIMENSIONS = 16_384
# 64 vectors of 16,384 numbers with 20 characters each are about 21 million bytes.
MAX_BYTES = 64_000_000
_OK = 200


def request_body(model: str, texts: Sequence[str], dimensions: int | None = None) -> dict[str, Any]:
    """Body of ``POST /embeddings``. Requests floats, because not every server supports base64."""
    body: dict[str, Any] = {
        "model": model,
        "input": [replace_unstorable(text) for text in texts],
        "encoding_format": "float",
    }
    return body | ({"dimensions": dimensions} if dimensions else {})


def read_embeddings(body: bytes, content_type: str, count: int) -> EmbeddingResult:
    """Vectors of a 200 response, in the order of the texts.

    The outcome is ``wrong_content`` unless there is exactly one vector per text, all of one length, finite and not
    zero."""
    value = read_json(body) if "json" in content_type.lower() else None
    vectors = _vectors(value.get("data"), count) if isinstance(value, Mapping) else None
    if vectors is None or not isinstance(value, Mapping):
        return EmbeddingResult(Outcome.WRONG_CONTENT, http_status=200, raw=excerpt(body), detail=content_type[:80])
    model = value.get("model")
    usage = value.get("usage")
    return EmbeddingResult(
        Outcome.OK,
        vectors=vectors,
        http_status=200,
        model_returned=replace_unstorable(model)[:200] if isinstance(model, str) else "",
        tokens_in=read_count(usage.get("prompt_tokens"), MAX_TOKENS) if isinstance(usage, Mapping) else None,
    )


def _vectors(data: Any, count: int) -> tuple[Vector, ...] | None:
    if not isinstance(data, list) or len(data) != count:
        return None
    vectors: dict[int, Vector] = {}
    for position, item in enumerate(data):
        if not isinstance(item, Mapping):
            return None
        index = item.get("index", position)
        vector = _vector(item.get("embedding"))
        if vector is None or not isinstance(index, int) or not 0 <= index < count or index in vectors:
            return None
        vectors[index] = vector
    if len({vector.shape for vector in vectors.values()}) > 1:
        return None
    return tuple(vectors[index] for index in range(count))


def _vector(value: Any) -> Vector | None:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_DIMENSIONS:
        return None
    if not all(isinstance(part, int | float) and not isinstance(part, bool) for part in value):
        return None
    try:
        vector = np.array(value, dtype=np.float32)
    # An integer too large for a float.
    except OverflowError:
        return None
    return vector if np.isfinite(vector).all() and vector.any() else None


class EndpointEmbedder:
    """Call ``POST {base_url}/embeddings`` from synchronous code. Reusable context manager.

    :raises DomainError: ``origin_invalid``, ``origin_not_allowed`` if the base URL may not be called."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        key: str = "",
        allowed_origins: Iterable[str],
        deadlines: Deadlines | None = None,
        azure: str = "",
        dimensions: int | None = None,
    ) -> None:
        self._base_url, self._key = base_url, key
        self._transport = GuardedTransport(
            base_url, key=key, allowed_origins=allowed_origins, deadlines=deadlines, azure=azure, max_bytes=MAX_BYTES
        )
        self._model, self._dimensions = model, dimensions
        self.space = content_hash(["endpoint", str(self._transport.origin), base_url, model, dimensions])
        self.provenance: Mapping[str, Any] = {
            "kind": "endpoint",
            "model": model,
            "origin": str(self._transport.origin),
        } | ({"dimensions": dimensions} if dimensions else {})

    def refuses(self, text: str) -> str:
        """Return an empty string: the languages of a remote model are unknown."""
        return ""

    def embed(self, texts: Sequence[str]) -> EmbeddingResult:
        """Send one request within the total deadline."""
        started = time.monotonic()
        embedded = self._loop.run_until_complete(self._send(texts))
        return replace(embedded, elapsed_seconds=time.monotonic() - started)

    async def _send(self, texts: Sequence[str]) -> EmbeddingResult:
        body = json.dumps(request_body(self._model, texts, self._dimensions), ensure_ascii=False).encode()
        try:
            response = await self._llm.post("/embeddings", body, self._model)
        except TransportFault as fault:
            return EmbeddingResult(fault.outcome, detail=str(fault)[:200])
        if response.status == _OK:
            result = read_embeddings(response.body, response.headers.get("content-type", ""), len(texts))
            if result.outcome is Outcome.OK:
                return result
            return replace(result, raw=excerpt(without_secrets(response.body, [self._key])))
        error = read_error(response.status, without_secrets(response.body, [self._key]))
        retry_after = retry_after_seconds(response.headers, datetime.now(UTC))
        return EmbeddingResult(
            error.outcome, http_status=error.http_status, retry_after=retry_after, detail=error.detail, raw=error.raw
        )

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._llm = self._transport.llm(self._base_url)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.run_until_complete(self._transport.aclose())
        self._loop.close()
