"""The list of rule metrics: what is not listed here does not exist."""

from __future__ import annotations

from evaluation.errors import UnknownName
from evaluation.metrics.keyword_coverage import keyword_coverage
from evaluation.metrics.keyword_hit import keyword_hit
from evaluation.metrics.latency import latency
from evaluation.metrics.negative_detection import negative_detection
from evaluation.registry import RuleMetric

RULE_METRICS: tuple[RuleMetric, ...] = (
    keyword_hit,
    keyword_coverage,
    negative_detection,
    latency,
)
_BY_NAME = {metric.spec.name: metric for metric in RULE_METRICS}


def rule_metric_named(name: str) -> RuleMetric:
    """The rule metric of that name.

    :raises UnknownName: with near matches and the names that exist.
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        raise UnknownName("rule metric", name, tuple(_BY_NAME)) from None


def is_rule_metric(name: str) -> bool:
    """Whether a rule, not a judge, gives the metric of that name."""
    return name in _BY_NAME
