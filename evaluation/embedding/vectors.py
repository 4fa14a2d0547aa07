"""Vectors: compared by cosine, kept as bytes."""

from __future__ import annotations

import math

import numpy as np

from evaluation.embedding.protocol import Vector

_BYTES = np.dtype("<f4")  # little-endian, so that a database may move between machines


def cosine(one: Vector, other: Vector) -> float:
    """The cosine of the angle between two vectors, between -1 and 1.

    :raises ValueError: when they differ in length or one has none.
    """
    if one.shape != other.shape:
        raise ValueError(f"vectors of {one.shape} and {other.shape} do not lie in one space")
    a, b = one.astype(np.float64), other.astype(np.float64)
    lengths = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    if not lengths or not math.isfinite(lengths):
        raise ValueError("a vector without length has no direction")
    return max(-1.0, min(1.0, float(a @ b) / lengths))


def percent(share: float) -> float:
    """A cosine or F1 as the metrics give it: below 0 as 0, above 1 as 1, x 100."""
    return 100 * max(0.0, min(1.0, share))


def to_bytes(vector: Vector) -> bytes:
    """Four bytes per dimension."""
    return vector.astype(_BYTES).tobytes()


def from_bytes(kept: bytes) -> Vector:
    """The vector of :func:`to_bytes`.

    :raises ValueError: when the bytes are no vector.
    """
    return np.frombuffer(kept, dtype=_BYTES).astype(np.float32)
