"""What gives embeddings and what comes back: one call embeds a few texts, and every fault is an outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from evaluation.judging.calls import Outcome

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embedded:
    """How one call ended. ``vectors`` are in the order of the texts and there only where the outcome is ``ok``; the
    token count is ``None`` where the server did not say. ``retry_after`` is in seconds; ``free`` marks calls that no
    provider was asked for."""

    outcome: Outcome
    vectors: tuple[Vector, ...] = ()
    http_status: int | None = None
    retry_after: float | None = None
    model_returned: str = ""
    tokens_in: int | None = None
    elapsed_seconds: float = 0.0
    detail: str = ""
    raw: str = ""
    free: bool = False


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
