"""A metric's title in both languages."""

from __future__ import annotations

from evaluation.core.registry import Bilingual
from evaluation.models import MetricDefinition


def title_of(metric: MetricDefinition) -> Bilingual:
    """The stored title; the name where a metric came without one, as imported ones do."""
    english = metric.title.get("en") or metric.name
    return Bilingual(english, metric.title.get("ko") or english)
