"""Where a report's figures come from: versions, hashes, model ids, draws with their seeds, cost, dates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from evaluation.runs.costs import Spending


@dataclass(frozen=True, slots=True)
class Versioned:
    """A thing with its version and content hash."""

    name: str
    version: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model id that a server named, with the number of ``replies`` under it that held what was asked for."""

    model: str
    replies: int

    def __str__(self) -> str:
        return f"{self.model} ({self.replies})"


@dataclass(frozen=True, slots=True)
class JudgeUsed:
    """A judge of the run. ``models_returned`` are the model ids the server named in its replies, ``served`` those whose
    replies its values rest on: values of several models are not one series. ``baseline`` tells
    the offline baseline, which every page calls so. ``method`` is how its values come about
    (``evaluation.models.runs.RunJudge``)."""

    judge: Versioned
    model: str
    models_returned: tuple[str, ...]
    served: tuple[ServedModel, ...]
    rubric: Versioned
    language: str
    primary: bool
    baseline: bool
    repeats: int
    method: str


@dataclass(frozen=True, slots=True)
class EmbeddingUsed:
    """What the run's texts were embedded with: an endpoint by its name, or without one a local model by the hash of
    its files. ``models_returned`` are the model ids the server named."""

    model: str
    endpoint: str
    sha256: str
    models_returned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenModelUsed:
    """The local model of BERTScore by the hash of its files, with the layer whose token embeddings were compared."""

    sha256: str
    layer: int
    baseline: float | None


@dataclass(frozen=True, slots=True)
class DrawUsed:
    """A draw for review over answers of the run."""

    draw_id: int
    queue: str
    example: bool
    strategy: str
    seed: int
    frame: int
    sampled: int
    planned_after_looking: bool
    drawn_at: datetime


@dataclass(frozen=True, slots=True)
class PinnedJudge:
    """What the preflight found out about a judge, and holds for the whole run: how it is asked (``rung``), which model
    answered, whether it tells tokens and log probabilities (``None``: not found out). ``judge_hash`` covers judge
    version, rung and model."""

    judge: str
    judge_id: int
    rung: str
    model_returned: str
    usage: bool | None
    logprobs: bool | None
    calls: int
    judge_hash: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Everything that another person needs to make the same report again. ``cost_by_rubric`` splits the cost."""

    product_version: str
    run_id: int
    config_hash: str
    seed: int
    k: int
    evaluation_type: str
    question_set: Versioned
    system: Versioned
    answers_hash: str
    answers_source: str
    profile: Versioned
    metrics: tuple[Versioned, ...]
    judges: tuple[JudgeUsed, ...]
    preflights: tuple[PinnedJudge, ...]
    embeddings: EmbeddingUsed | None
    token_model: TokenModelUsed | None
    draws: tuple[DrawUsed, ...]
    cost: Spending
    cost_by_rubric: Mapping[str, Spending]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
