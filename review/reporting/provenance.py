"""Where a report's figures come from: versions, hashes, model ids, draws with their seeds, cost, dates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Versioned:
    """A thing with its version and content hash."""

    name: str
    version: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class JudgeUsed:
    """A judge of the run. ``models_returned`` are the model ids the server named in its replies; ``baseline`` tells
    the offline baseline, which every page calls so."""

    judge: Versioned
    model: str
    models_returned: tuple[str, ...]
    rubric: Versioned
    language: str
    primary: bool
    baseline: bool
    repeats: int


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
class Cost:
    """What the judge calls of the run cost, in US dollars. Where ``unknown_calls`` is above 0 the true cost is at
    least ``known``: their price or their outcome is unknown. Token counts likewise leave unknown ones out."""

    calls: int
    known: Decimal
    unknown_calls: int
    tokens_in: int
    tokens_out: int

    @property
    def at_least(self) -> bool:
        """Whether the known cost is only a lower bound."""
        return self.unknown_calls > 0


@dataclass(frozen=True, slots=True)
class Provenance:
    """Everything that another person needs to make the same report again."""

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
    draws: tuple[DrawUsed, ...]
    cost: Cost
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
