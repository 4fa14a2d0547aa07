"""The strict reading of a judge's reply: a score is taken only where it literally stands, on the scale, in one
JSON object of exactly the shape asked for. Everything else is a failure with its reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evaluation.judging.calls import JudgeReply, Outcome
from evaluation.judging.rubric import Rubric, RubricMetric
from evaluation.judging.wire import storable
from evaluation.samples import Result, Status

_LONGEST_NUMBER = 18


class _Verdict(BaseModel):
    """One metric's part of a reply; ``score`` is any JSON value, so that a wrong one can be told from a wrong shape."""

    model_config = ConfigDict(strict=True, extra="forbid")
    reason: str
    score: Any


class _Score(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    score: Annotated[int, Field(ge=-(10**6), le=10**6)]


def read_reply(reply: JudgeReply, rubric: Rubric, metrics: Sequence[str]) -> dict[str, Result]:
    """One result for each of ``metrics``. Never raises for what stands in the reply.

    Reasons of failed results: the outcome of a call that gave no text (``timeout``, ``refused``, ``filtered``,
    ``truncated``, ...); ``parse`` for a reply that is not the object asked for; ``scale`` for a score that is
    not one of the levels. A bad score fails its metric alone.
    """
    if reply.outcome is not Outcome.OK:
        return {name: Result.failed(str(reply.outcome)) for name in metrics}
    verdicts = _one_object(reply.raw)
    if verdicts is None or not set(verdicts) <= set(metrics):
        return {name: Result.failed("parse") for name in metrics}
    return {name: _result(rubric.metric(name), verdicts.get(name)) for name in metrics}


def reading_outcome(reply: JudgeReply, results: Mapping[str, Result]) -> Outcome:
    """The outcome for the retry policy: ``parse`` where a delivered reply held not one verdict of the right shape.

    Where some verdicts could be read the reply stands and the others fail alone.
    """
    failed = [result.status is Status.FAILED and result.reason == "parse" for result in results.values()]
    if reply.outcome is Outcome.OK and failed and all(failed):
        return Outcome.PARSE
    return reply.outcome


def _result(metric: RubricMetric, part: Any) -> Result:
    try:
        verdict = _Verdict.model_validate(part)
    except ValidationError:
        return Result.failed("parse")
    reason = storable(verdict.reason.strip())
    try:
        score = _Score(score=verdict.score).score
    except ValidationError:
        score = None
    if score is None or score not in metric.values:
        return Result.failed("scale", detail={"got": _shown(verdict.score), "reason": reason})
    return Result.scored(score, reason=reason)


def _shown(value: Any) -> str:
    """What stood in place of a score, short; of a list or an object only its kind."""
    return type(value).__name__ if isinstance(value, list | dict) else storable(json.dumps(value)[:80])


def _one_object(text: str) -> dict[str, Any] | None:
    """The reply's one JSON object; ``None`` for anything before or after it, a repeated key, or no object."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_int=_number)
    except (ValueError, RecursionError):  # RecursionError: nested deeper than any verdict
        return None
    return value if isinstance(value, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is there twice")
    return value


def _number(digits: str) -> int | float:
    """Numbers too long to be a level stay numbers, so that they fail by scale and not by length."""
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float("inf")
