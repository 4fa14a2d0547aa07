"""Which models a run embeds with, what gives embeddings and what comes back: one call embeds a few texts, and every
fault is an outcome. How texts are told apart, what language they are in, and how many go into one call; vectors are
compared by cosine, kept as bytes.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from evaluation.core.samples import FrozenModel
from evaluation.judging.calls import Ended

LOCAL, NONE = "local", "none"  # in place of an endpoint's name: the local model, and no embeddings


class EmbeddingChoice(FrozenModel):
    """The embeddings of a run: of an endpoint (its row) with a model, or without one of a local model by the hash of
    its files, so that another model in its place is noticed."""

    endpoint: int | None = None
    model: str = ""
    sha256: str = ""


class TokenChoice(FrozenModel):
    """The local model of BERTScore by the hash of its files, the layer whose states are compared (from 1), and the
    F1 of unrelated texts where scores are rescaled too."""

    sha256: str
    layer: int = Field(ge=1, le=200)
    baseline: float | None = Field(default=None, ge=0, lt=1, allow_inf_nan=False)


Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embedded(Ended):
    """How one call ended. ``vectors`` are in the order of the texts and there only where the outcome is ``ok``."""

    vectors: tuple[Vector, ...] = ()


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token embeddings of one text, of length 1 each. ``counts`` is false for the marks around the text;
    ``truncated`` says that the text was longer than the model reads."""

    states: NDArray[np.float32]
    counts: Sequence[bool]
    truncated: bool


class TokenEncoder(Protocol):
    """A model whose token embeddings can be had. ``name`` and ``digest`` (of its files) say which it is."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    def refuses(self, text: str) -> str:
        """The reason code why the text is not for this model, or an empty text."""
        ...

    def tokens(self, texts: Sequence[str], layer: int) -> list[Tokens]:
        """The token embeddings of each text behind a layer (from 1)."""
        ...


class Embedder(Protocol):
    """A source of embeddings, to be used as a context manager from one thread.

    ``space`` identifies the space its vectors lie in: vectors of one space may be compared and kept. ``provenance`` is
    what stands on every score: kind, model, and where it runs.
    """

    @property
    def space(self) -> str: ...

    @property
    def provenance(self) -> Mapping[str, Any]: ...

    def refuses(self, text: str) -> str:
        """The reason code why the text is not for this model, or an empty text."""
        ...

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Exactly one call for these texts, at most one batch; never raises for a fault of the server."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


MOST_TEXTS = 64
MOST_CHARACTERS = 100_000  # of one call, unless a single text is longer
_KOREAN_SHARE = 0.1


def text_hash(text: str) -> str:
    """SHA-256 of the text in NFC, as 64 hexadecimal digits: what its embedding is kept under."""
    return hashlib.sha256(unicodedata.normalize("NFC", text).encode("utf-8", "replace")).hexdigest()


def is_korean(text: str) -> bool:
    """Whether at least a tenth of the letters are Hangul."""
    letters = [character for character in unicodedata.normalize("NFC", text) if character.isalpha()]
    hangul = sum("가" <= c <= "힣" or "ㄱ" <= c <= "ㅣ" for c in letters)
    return bool(letters) and hangul / len(letters) >= _KOREAN_SHARE


def batches(texts: Iterable[str]) -> Iterator[Sequence[str]]:
    """Distinct texts in calls of at most 64 texts and 100,000 characters."""
    batch: list[str] = []
    characters = 0
    for text in dict.fromkeys(texts):
        if batch and (len(batch) >= MOST_TEXTS or characters + len(text) > MOST_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch


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
