"""Preferences between two answers to one question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.core.scales import Scale
from evaluation.files.answer_rows import QUESTION_ID
from evaluation.files.question_fields import TEXT
from evaluation.files.rating_values import (
    Origin,
    Rater,
    failure_off_scale,
    failure_without_value,
    read_origin,
    value_on,
)
from evaluation.files.row import Row
from evaluation.files.tree import Kind
from evaluation.files.values import expand_cell, read_text

PREFERENCE = Scale.parse("-2..2")
OF_JUDGES = Scale.parse("-2..2:real")  # the difference of two scores, say


@dataclass(frozen=True, slots=True)
class PairSide:
    """One of the two answers; ``system`` is empty where the file does not name it."""

    system: str
    answer: str


@dataclass(frozen=True, slots=True)
class PairRow:
    """``value``: from -2 (a much better) to 2 (b much better), whole for people; without one ``failure`` says why, as
    for ratings. ``metric`` is what was compared, ``preference`` where the row does not say."""

    pair_id: str
    question_id: str
    question: str
    answer_a: PairSide
    answer_b: PairSide
    metric: str
    value: float | None
    failure: str
    reason: str
    origin: Origin
    metadata: Mapping[str, Any]
    line: int


def read_pair(row: Row) -> PairRow:
    """One pair; what is missing or off the scale is noted."""
    question_id, question = row.name(*QUESTION_ID), row.text(*TEXT)
    if not question and not question_id:
        row.problems.add("missing", row.line, "question", names="question, question_id")
    origin, reason = read_origin(row), row.text("reason")
    value, failure = _value(row, origin.rater, reason)
    return PairRow(
        pair_id=row.name("pair_id"),
        question_id=question_id,
        question=question,
        answer_a=_side(row, "answer_a"),
        answer_b=_side(row, "answer_b"),
        metric=row.name("metric") or "preference",
        value=value,
        failure=failure,
        reason=reason,
        origin=origin,
        metadata=row.rest(),
        line=row.line,
    )


def _value(row: Row, rater: Rater, reason: str) -> tuple[float | None, str]:
    node = row.take("value")
    if node is None:
        return None, failure_without_value(row, rater, reason)
    scale = PREFERENCE if rater is Rater.HUMAN else OF_JUDGES
    value = value_on(node, scale)
    if isinstance(value, float):
        return value, ""
    return None, failure_off_scale(node, scale, row, rater)


def _side(row: Row, name: str) -> PairSide:
    """``{system, answer}``, or the answer alone."""
    taken = row.take(name)
    if taken is None:
        row.problems.add("missing", row.line, name, names=name)
        return PairSide("", "")
    node = expand_cell(taken, name, row.problems, split=False)
    if taken.kind is Kind.CELL and node.kind is not Kind.MAP:
        node = taken
    if node.kind is not Kind.MAP:
        return PairSide("", read_text(node, name, row.problems))
    inner = Row(node, row.problems)
    answer = inner.take("answer", "text")
    if answer is None:
        row.problems.add("missing", node.line, f"{name}.answer", names="answer")
        return PairSide("", "")
    return PairSide(inner.name("system"), read_text(answer, f"{name}.answer", row.problems))
