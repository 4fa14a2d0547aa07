"""What a metric and a judge see, and what they give back: plain frozen values without a database."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict

VALUE_BOUND = 1e12  # the database refuses values beyond it, which keeps infinity and NaN out on both databases


NEGATIVE_CATEGORY = "negative"  # of questions whose right answer is to abstain or correct


class Status(StrEnum):
    """The three result statuses; pending is an open work unit, not a result."""

    SCORED = "scored"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"


class FrozenModel(BaseModel):
    """A value that cannot be changed and refuses fields it does not know. How one is read is worked out when the first
    is read, which saves every process a tenth of a second at its start."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class CheckPhrases(FrozenModel):
    """The data of a check on a negative question: phrases that must all, any or none occur in the answer."""

    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()


class Nugget(FrozenModel):
    """A fact an answer should hold, with alternative wordings; ``vital`` ones count in the strict figure."""

    name: str
    alternatives: tuple[str, ...] = ()
    vital: bool = True


class QuestionSpec(FrozenModel):
    """A question as every part of the product reads it; the typed window on ``Question.spec``.

    ``references`` are equally good expected answers. ``keywords`` are expected keywords, each a tuple of
    alternatives of which any counts. ``group`` names questions that are not independent of each other.
    """

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


@dataclass(frozen=True, slots=True)
class ContextSpec:
    """A retrieved passage in the order the system used it."""

    text: str
    chunk_id: str = ""
    score: float | None = None
    source: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerSpec:
    """What a system answered. ``contexts`` is ``None`` where the system does not retrieve, empty where it
    retrieved nothing. ``latency_seconds`` runs from the request to the complete answer."""

    text: str
    contexts: tuple[ContextSpec, ...] | None = None
    retrieved_ids: tuple[str, ...] | None = None
    latency_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a result that a person can check: a claim, statement, context, nugget, keyword, citation or flag.

    ``start`` and ``end`` are character offsets into the answer, end exclusive; ``approximate`` marks a place that was
    found by likeness, not word for word. ``context`` is the position of the passage it rests on, from 0; ``quote`` the
    words there, ``quote_start`` and ``quote_end`` their offsets in the passage where they were found.
    """

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


class _Beside(TypedDict, total=False):
    """What may stand beside a value or label; ``reason`` is the scorer's explanation, if it gave one."""

    reason: str
    detail: Mapping[str, Any]
    findings: Sequence[Finding]


class _Detail(TypedDict, total=False):
    detail: Mapping[str, Any]


SAYS_NOTHING = "says_nothing"  # by rule: the answer is blank, an echo or a stock phrase
ADMITS_IGNORANCE = "admits_ignorance"  # the judge found no claim in an answer that admits not to know by rule
#: Reasons for "not applicable" that lie in the answer, not in the question or the system.
BY_ANSWER = frozenset({SAYS_NOTHING, ADMITS_IGNORANCE, "no_claims", "no_citations"})
#: Reasons for "not applicable" that rest on the judge's word alone. They count towards the limit of failed results.
BY_JUDGE_ALONE = frozenset({"no_claims", "no_statements"})


def reason_code(reason: str) -> str:
    """The code of a reason without its detail."""
    return reason.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one metric on one answer. Only a scored result has a value or a label; the others have a
    reason: a code of ``evaluation/messages/reasons.py``, optionally followed by ``": "`` and a detail.

    :raises ValueError: when status, value, label and reason do not fit together.
    """

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
    def scored(cls, value: float, **beside: Unpack[_Beside]) -> Result:
        """A number on the metric's scale."""
        return cls(Status.SCORED, value=float(value), **beside)

    @classmethod
    def labelled(cls, label: str, **beside: Unpack[_Beside]) -> Result:
        """A class of the metric's class scale."""
        return cls(Status.SCORED, label=label, **beside)

    @classmethod
    def failed(cls, reason: str, **detail: Unpack[_Detail]) -> Result:
        """It should have been computed and could not be."""
        return cls(Status.FAILED, reason=reason, **detail)

    @classmethod
    def not_applicable(cls, reason: str, **detail: Unpack[_Detail]) -> Result:
        """The question, the system or the answer has no input for the metric."""
        return cls(Status.NOT_APPLICABLE, reason=reason, **detail)
