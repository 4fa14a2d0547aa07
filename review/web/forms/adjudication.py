"""A lead's decisions as their forms send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import QueryDict

from evaluation.core.whole_numbers import whole_number
from review.models import QueueMetric


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decided metric: value or label, the reason, and the number of the newest decision that was in view;
    ``entered`` is the value as it was typed."""

    value: float | None
    label: str | None
    reason: str
    seen: int
    entered: str


def read_verdicts(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, Verdict]:
    """The metrics for which a value was chosen. The reason is the metric's own, else the common one."""
    found = {}
    for row in metrics:
        name = row.metric.name
        entered = data.get(f"value:{name}", "").strip()
        if entered:
            labelled = bool(row.metric.read_scale().labels)
            reason = data.get(f"reason:{name}", "").strip() or data.get("reason", "")
            seen = whole_number(data.get(f"seen:{name}", ""))
            found[name] = Verdict(
                None if labelled else _number(entered),
                entered if labelled else None,
                reason,
                -1 if seen is None else seen,
                entered,
            )
    return found


def read_references(data: QueryDict) -> list[str]:
    """The references of an amended question, one field each; empty ones are left out."""
    return [one.strip() for one in data.getlist("reference") if isinstance(one, str) and one.strip()]


def read_anchors(data: QueryDict, names: Sequence[str]) -> Mapping[str, str]:
    """The texts of levels or labels of an amended rubric, by level or label."""
    return {name: data.get(f"text:{name}", "") for name in names}


def _number(entered: str) -> float | None:
    try:
        return float(entered)
    except ValueError:
        return None
