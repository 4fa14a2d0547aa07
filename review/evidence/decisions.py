"""Overrides and adjudications that stand."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from review.evidence.judged import Key
from review.models import Override


class _OfAKind(Protocol):
    @property
    def kind(self) -> str: ...


Row = TypeVar("Row", bound=_OfAKind)


@dataclass(frozen=True, slots=True)
class Decision:
    """A value or label above everything said before, by an override or an adjudication; a revert has neither."""

    value: float | None
    label: str | None
    kind: str


def standing(rows: Iterable[Row]) -> Row | None:
    """The override or adjudication that stands, from all rows of an answer and metric in the order of ``seq``: each
    revert takes away the newest one before it."""
    stack: list[Row] = []
    for row in rows:
        if row.kind != Override.Kind.REVERT:
            stack.append(row)
        elif stack:
            stack.pop()
    return stack[-1] if stack else None


def standing_decisions(answer_set_id: int | None, answer_ids: Collection[int] | None = None) -> dict[Key, Decision]:
    """The decision of each answer and metric that stands. Without an answer set, of the answers named. One query."""
    rows = (
        Override.objects.all()
        if answer_set_id is None
        else Override.objects.filter(answer__answer_set_id=answer_set_id)
    )
    if answer_ids is not None:
        rows = rows.filter(answer_id__in=answer_ids)
    found: dict[Key, list[Decision]] = {}
    columns = rows.order_by("answer_id", "metric_id", "seq")
    for answer_id, metric_id, kind, value, label in columns.values_list(
        "answer_id", "metric_id", "kind", "value", "label"
    ):
        found.setdefault((answer_id, metric_id), []).append(Decision(value, label, kind))
    return {key: top for key, several in found.items() if (top := standing(several)) is not None}


def adjudicated(answer_ids: Collection[int]) -> dict[int, frozenset[int]]:
    """Answer -> the metrics on which a lead's adjudication stands; they are closed for their raters. One query."""
    found: dict[int, set[int]] = {}
    for (answer, metric), decision in standing_decisions(None, answer_ids).items():
        if decision.kind == Override.Kind.ADJUDICATION:
            found.setdefault(answer, set()).add(metric)
    return {answer: frozenset(metrics) for answer, metrics in found.items()}
