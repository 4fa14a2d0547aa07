"""Overrides and adjudications that stand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from review.figures.judged import Key
from review.models.ratings import Override


@dataclass(frozen=True, slots=True)
class Decision:
    """An override or adjudication that was not taken back."""

    value: float | None
    label: str | None
    kind: str


def standing_decisions(answer_set_id: int | None, answer_ids: Collection[int] | None = None) -> dict[Key, Decision]:
    """The newest decision of each answer and metric that stands; a revert takes back the newest one that stands
    before it. Without an answer set, of the answers named. One query."""
    rows = (
        Override.objects.all()
        if answer_set_id is None
        else Override.objects.filter(answer__answer_set_id=answer_set_id)
    )
    if answer_ids is not None:
        rows = rows.filter(answer_id__in=answer_ids)
    standing: dict[Key, list[Decision]] = {}
    columns = rows.order_by("answer_id", "metric_id", "seq")
    for answer_id, metric_id, kind, value, label in columns.values_list(
        "answer_id", "metric_id", "kind", "value", "label"
    ):
        stack = standing.setdefault((answer_id, metric_id), [])
        if kind != Override.Kind.REVERT:
            stack.append(Decision(value, label, kind))
        elif stack:
            stack.pop()
    return {key: stack[-1] for key, stack in standing.items() if stack}
