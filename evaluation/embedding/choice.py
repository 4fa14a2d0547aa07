"""Which models a run embeds with, as its frozen configuration holds it."""

from __future__ import annotations

from pydantic import Field

from evaluation.core.samples import FrozenModel

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
