"""The embeddings format: a request's body, and a response's body read with suspicion. Pure, no network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluation.embedding.protocol import Embedded, Vector
from evaluation.judging.calls import Outcome
from evaluation.judging.wire import excerpt, storable

MOST_DIMENSIONS = 16_384
_MOST_TOKENS = 100_000_000


def request_body(model: str, texts: Sequence[str], dimensions: int | None = None) -> dict[str, Any]:
    """The body of ``POST /embeddings``; floats rather than base64, which not every server knows."""
    body: dict[str, Any] = {"model": model, "input": [storable(text) for text in texts], "encoding_format": "float"}
    return body | ({"dimensions": dimensions} if dimensions else {})


def read_embeddings(body: bytes, content_type: str, count: int) -> Embedded:
    """The vectors of a response with status 200, in the order asked for.

    ``wrong_content`` unless there is exactly one vector for each text, all of one length, finite and not null.
    """
    value = _json(body) if "json" in content_type.lower() else None
    vectors = _vectors(value.get("data"), count) if isinstance(value, Mapping) else None
    if vectors is None or not isinstance(value, Mapping):
        return Embedded(Outcome.WRONG_CONTENT, http_status=200, raw=excerpt(body), detail=content_type[:80])
    model = value.get("model")
    usage = value.get("usage")
    return Embedded(
        Outcome.OK,
        vectors,
        http_status=200,
        model_returned=storable(model)[:200] if isinstance(model, str) else "",
        tokens_in=_count(usage.get("prompt_tokens")) if isinstance(usage, Mapping) else None,
    )


def _vectors(data: Any, count: int) -> tuple[Vector, ...] | None:
    if not isinstance(data, list) or len(data) != count:
        return None
    found: dict[int, Vector] = {}
    for place, item in enumerate(data):
        if not isinstance(item, Mapping):
            return None
        index = item.get("index", place)
        vector = _vector(item.get("embedding"))
        if vector is None or not isinstance(index, int) or not 0 <= index < count or index in found:
            return None
        found[index] = vector
    if len({vector.shape for vector in found.values()}) > 1:
        return None
    return tuple(found[index] for index in range(count))


def _vector(value: Any) -> Vector | None:
    if not isinstance(value, list) or not 0 < len(value) <= MOST_DIMENSIONS:
        return None
    if not all(isinstance(part, int | float) and not isinstance(part, bool) for part in value):
        return None
    try:
        vector = np.array(value, dtype=np.float32)
    except OverflowError:  # a whole number longer than any float
        return None
    return vector if np.isfinite(vector).all() and vector.any() else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS else None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # RecursionError: nested deeper than any list of vectors
        return None
