"""Decisions about scores as their forms send them: of one answer, and a lead's on a dispute with what is amended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import Http404, QueryDict

from evaluation.core.whole_numbers import whole_number
from evaluation.models import MetricDefinition
from review.models import QueueMetric


@dataclass(frozen=True, slots=True)
class Decided:
    """The metric, the value or label, and the reason; ``entered`` is the value as it was typed. ``seen`` is the number
    of the newest decision that was in view, -1 where that is not said."""

    metric: MetricDefinition
    value: float | None
    label: str | None
    reason: str
    entered: str
    seen: int = -1


def read_decision(data: QueryDict) -> Decided:
    """What was decided. Text that is no number gives neither value nor label, which the engine refuses.

    :raises Http404: for a metric that does not exist.
    """
    metric = MetricDefinition.objects.filter(pk=whole_number(data.get("metric", "")) or 0).first()
    if metric is None:
        raise Http404
    entered = data.get(f"value:{metric.name}", "").strip()
    return _decided(metric, entered, data.get("reason", ""))


def read_verdicts(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, Decided]:
    """The metrics of a dispute for which a value was chosen. The reason is the metric's own, else the common one."""
    found = {}
    for row in metrics:
        name = row.metric.name
        entered = data.get(f"value:{name}", "").strip()
        if entered:
            reason = data.get(f"reason:{name}", "").strip() or data.get("reason", "")
            seen = whole_number(data.get(f"seen:{name}", ""))
            found[name] = _decided(row.metric, entered, reason, -1 if seen is None else seen)
    return found


def _decided(metric: MetricDefinition, entered: str, reason: str, seen: int = -1) -> Decided:
    label = entered if entered and metric.read_scale().labels else None
    return Decided(metric, None if label else _number(entered), label, reason, entered, seen)


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
