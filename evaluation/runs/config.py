"""The frozen configuration of a run: the typed window on ``Run.config``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from evaluation.core.canonical import content_hash
from evaluation.embedding.choice import EmbeddingChoice, TokenChoice


class RunConfig(BaseModel):
    """What was asked for when the run was made. ``question_ids`` empty means all questions of the set. ``embeddings``
    are its metrics that need embeddings and no judge, computed with ``embedding`` and ``tokens`` where those are there.
    ``batch`` hands the calls of judges to their providers in batches, where the endpoint takes them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    evaluation_type: str = "full_rag"
    k: int = Field(default=5, ge=1, le=50)
    rules: tuple[str, ...] = ()
    embeddings: tuple[str, ...] = ()
    embedding: EmbeddingChoice | None = None
    tokens: TokenChoice | None = None
    repeat: int = Field(default=1, ge=1, le=50)
    max_concurrency: int = Field(default=32, ge=1, le=1000)
    use_cache: bool = True
    question_ids: tuple[str, ...] = ()
    batch: bool = False

    @property
    def hash(self) -> str:
        """Hash of the configuration, folded into the key of every unit of the run. On what way calls are made is no
        part of it."""
        return content_hash(self.model_dump(mode="json", exclude={"batch"}))
