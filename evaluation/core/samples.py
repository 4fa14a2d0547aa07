"""Inputs and results of metrics and judges: frozen values without a database."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict

from evaluation.core.canonical import canonical_texts, normalize_nfc

# The database refuses larger values, which excludes infinity and NaN on PostgreSQL and SQLite.
VALUE_BOUND = 1e12


# Category of questions that should be refused or corrected.
NEGATIVE_CATEGORY = "negative"


class Status(StrEnum):
    """Status of a result. A pending result is a work unit, not a result."""

    SCORED = "scored"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"


class FrozenModel(BaseModel):
    """Immutable model that refuses unknown fields. The validator is built on first use, which saves 0.1 s at
    start-up."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class CheckPhrases(FrozenModel):
    """Phrases of a check for a negative question: all, any or none must occur in the answer."""

    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()


class Nugget(FrozenModel):
    """A fact that an answer should contain, with alternative wordings; the strict score counts ``vital`` ones."""

    name: str
    alternatives: tuple[str, ...] = ()
    vital: bool = True


class QuestionSpec(FrozenModel):
    """A question, as stored in ``Question.spec``.

    ``references``: equally good expected answers. ``keywords``: expected keywords, each a tuple of alternatives.
    ``group``: name shared by questions that are not independent."""

    id: str
    category: str
    text: str
    difficulty: str = ""
    references: tuple[str, ...] = ()
    keywords: tuple[tuple[str, ...], ...] = ()
    check: str = ""
    check_phrases: CheckPhrases | None = None
    hops: int | None = None
    aggregation_type: str = ""
    inference_type: str = ""
    required_info: tuple[str, ...] = ()
    nuggets: tuple[Nugget, ...] = ()
    ground_truth_chunk_ids: tuple[str, ...] = ()
    persona: str = ""
    history: tuple[str, ...] = ()
    clarification_ok: bool = False
    group: str = ""
    tags: tuple[str, ...] = ()


def questions_hash(questions: Sequence[QuestionSpec], on_progress: Callable[[], object] = lambda: None) -> str:
    """Content hash of a set: all fields except metadata, sorted by id, independent of the file order.

    Default values are omitted, so that new fields of the product change no hash. The hash is that of a JSON list, which
    is never built in memory. ``on_progress`` is called for each question."""
    ids: list[str] = []
    for question in questions:
        ids.append(normalize_nfc(question.id))
        on_progress()
    digest = hashlib.sha256(b"[")
    for position, index in enumerate(sorted(range(len(ids)), key=ids.__getitem__)):
        on_progress()
        content = questions[index].model_dump(mode="json", exclude_defaults=True)
        digest.update((b"," if position else b"") + canonical_texts(content).encode())
    digest.update(b"]")
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class ContextSpec:
    """A retrieved passage; passages are in the order in which the system used them."""

    text: str
    chunk_id: str = ""
    score: float | None = None
    source: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerSpec:
    """A system's answer.

    ``contexts`` is ``None`` if the system has no retrieval, empty if it retrieved nothing. ``latency_seconds``: from
    the request to the complete answer."""

    text: str
    contexts: tuple[ContextSpec, ...] | None = None
    retrieved_ids: tuple[str, ...] | None = None
    latency_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a result that a person can check: a claim, statement, context, nugget, keyword, citation or flag.

    ``start``, ``end``: character offsets into the answer, end exclusive; ``approximate``: located by similarity instead
    of an exact match. ``context``: index of the supporting passage, from 0; ``quote``: words of that passage;
    ``quote_start``, ``quote_end``: their offsets in it, if located."""

    kind: str
    text: str
    verdict: str = ""
    context: int | None = None
    start: int | None = None
    end: int | None = None
    reason: str = ""
    approximate: bool = False
    quote: str = ""
    quote_start: int | None = None
    quote_end: int | None = None


class _ResultExtras(TypedDict, total=False):
    """Optional fields of a scored result; ``reason`` is the scorer's explanation, if any."""

    reason: str
    detail: Mapping[str, Any]
    findings: Sequence[Finding]


class _Detail(TypedDict, total=False):
    detail: Mapping[str, Any]


# Found by rule: the answer is blank, an echo of the question or a stock phrase.
SAYS_NOTHING = "says_nothing"
# The judge found no claim, and by rule the answer admits not to know.
ADMITS_IGNORANCE = "admits_ignorance"
#: Reasons for "not applicable" that depend on the answer, not on the question or the system.
ANSWER_REASONS = frozenset({SAYS_NOTHING, ADMITS_IGNORANCE, "no_claims", "no_citations"})
#: Reasons for "not applicable" that only the judge states. They count towards the limit of failed results.
JUDGE_ONLY_REASONS = frozenset({"no_claims", "no_statements"})


def reason_code(reason: str) -> str:
    """Code of a reason, without its detail."""
    return reason.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one metric for one answer.

    A scored result has a value or a label. Other results have a reason: a code of ``evaluation/messages/reasons.py``,
    optionally followed by ``": "`` and a detail.

    :raises ValueError: if status, value, label and reason are inconsistent."""

    status: Status
    value: float | None = None
    label: str | None = None
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Finding] = ()

    def __post_init__(self) -> None:
        if self.status is Status.SCORED:
            if (self.value is None) == (self.label is None):
                raise ValueError("a scored result has exactly one of value and label")
            if self.value is not None and not (math.isfinite(self.value) and abs(self.value) < VALUE_BOUND):
                raise ValueError(f"not a finite bounded value: {self.value}")
        elif self.value is not None or self.label is not None or not self.reason:
            raise ValueError(f"a {self.status} result has a reason and neither value nor label")

    @classmethod
    def scored(cls, value: float, **extras: Unpack[_ResultExtras]) -> Result:
        """Result with a number on the metric's scale."""
        return cls(Status.SCORED, value=float(value), **extras)

    @classmethod
    def labelled(cls, label: str, **extras: Unpack[_ResultExtras]) -> Result:
        """Result with a class of the metric's class scale."""
        return cls(Status.SCORED, label=label, **extras)

    @classmethod
    def failed(cls, reason: str, **detail: Unpack[_Detail]) -> Result:
        """Result that could not be computed although it applies."""
        return cls(Status.FAILED, reason=reason, **detail)

    @classmethod
    def not_applicable(cls, reason: str, **detail: Unpack[_Detail]) -> Result:
        """Result without input for the metric in the question, system or answer."""
        return cls(Status.NOT_APPLICABLE, reason=reason, **detail)
