"""All metrics declared in code."""

from __future__ import annotations

from evaluation.core.metric_specs import MetricSpec
from evaluation.judging.catalogue import judge_metrics
from evaluation.judging.embedding.similarity import EMBEDDING_METRICS
from evaluation.metrics.catalogue import rule_metrics
from evaluation.profiles.per_answer import ANSWER_OVERALL, DERIVED_METRICS


def declared_metrics() -> dict[str, MetricSpec]:
    """Shipped metrics and own metrics, by name."""
    rules = (metric.spec for metric in rule_metrics())
    derived = (*(metric.spec for metric in DERIVED_METRICS), ANSWER_OVERALL)
    return {spec.name: spec for spec in (*rules, *EMBEDDING_METRICS, *judge_metrics(), *derived)}
