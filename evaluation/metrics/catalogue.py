"""Registry of rule metrics: the shipped ones and those of packages."""

from __future__ import annotations

from evaluation.core.errors import UnknownName
from evaluation.core.metric_specs import RuleMetric
from evaluation.metrics.citation_coverage import citation_coverage
from evaluation.metrics.citations import citation_format, citation_validity
from evaluation.metrics.hallucination_flags import hallucination_flags
from evaluation.metrics.keyword_coverage import keyword_coverage, keyword_hit, nugget_coverage, required_info_coverage
from evaluation.metrics.phrases import dont_know, negative_detection, next_steps
from evaluation.metrics.retrieval import (
    average_precision_at_k,
    hit_at_k,
    latency,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
    source_relevance,
)
from evaluation.metrics.vague_questions import check_relevance

RULE_METRICS: tuple[RuleMetric, ...] = (
    keyword_hit,
    keyword_coverage,
    negative_detection,
    latency,
    dont_know,
    precision_at_k,
    recall_at_k,
    hit_at_k,
    reciprocal_rank,
    ndcg_at_k,
    average_precision_at_k,
    required_info_coverage,
    citation_format,
    citation_validity,
    source_relevance,
    citation_coverage,
    nugget_coverage,
    hallucination_flags,
    check_relevance,
    next_steps,
)
_BY_NAME = {metric.spec.name: metric for metric in RULE_METRICS}


def rule_metrics() -> tuple[RuleMetric, ...]:
    """Shipped metrics, then own metrics."""
    return tuple(_BY_NAME.values())


def own_rule_metrics() -> tuple[str, ...]:
    """Names of the own metrics."""
    return tuple(_BY_NAME)[len(RULE_METRICS) :]


def add_rule_metric(metric: RuleMetric) -> None:
    """Register a metric of a package. Its function runs only in the process of ``metric_packages.isolation``."""
    _BY_NAME[metric.spec.name] = metric


def rule_metric_named(name: str) -> RuleMetric:
    """Rule metric with this name.

    :raises UnknownName: with near matches and the existing names."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise UnknownName("rule metric", name, tuple(_BY_NAME)) from None


def is_rule_metric(name: str) -> bool:
    return name in _BY_NAME
