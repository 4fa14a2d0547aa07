"""Refusals of the review engine with metrics under their titles instead of their names."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import get_language

from evaluation.core.errors import Refused
from evaluation.models import MetricDefinition
from evaluation.wording.messages import explain_refusal


def in_words(refused: Refused, metrics: Iterable[MetricDefinition]) -> str:
    """The sentence of a refusal; what it says of metrics is said of their titles."""
    language = get_language() or "en"
    titles = {metric.name: str(metric.title.get(language) or metric.name) for metric in metrics}
    params = dict(refused.params)
    if isinstance(named := params.get("metric"), str):
        params["metric"] = titles.get(named, named)
    if isinstance(several := params.get("metrics"), list | tuple):
        params["metrics"] = [titles.get(str(name), str(name)) for name in several]
    return explain_refusal(Refused(refused.code, **params))


def metrics_in(refused: Refused) -> tuple[str, ...]:
    """The names of the metrics that a refusal is about."""
    one, several = refused.params.get("metric"), refused.params.get("metrics")
    if isinstance(several, list | tuple):
        return tuple(map(str, several))
    return (one,) if isinstance(one, str) else ()
