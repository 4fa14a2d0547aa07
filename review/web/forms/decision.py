"""A decision about a score as its form sends it."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, QueryDict

from evaluation.core.whole_numbers import whole_number
from evaluation.models import MetricDefinition


@dataclass(frozen=True, slots=True)
class Decided:
    """The metric, the value or label, and the reason; ``entered`` is the value as it was typed."""

    metric: MetricDefinition
    value: float | None
    label: str | None
    reason: str
    entered: str


def read_decision(data: QueryDict) -> Decided:
    """What was decided. Text that is no number gives neither value nor label, which the engine refuses.

    :raises Http404: for a metric that does not exist.
    """
    metric = MetricDefinition.objects.filter(pk=whole_number(data.get("metric", "")) or 0).first()
    if metric is None:
        raise Http404
    entered = data.get(f"value:{metric.name}", "").strip()
    label = entered if entered and metric.read_scale().labels else None
    return Decided(metric, None if label else _number(entered), label, data.get("reason", ""), entered)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
