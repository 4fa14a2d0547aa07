"""Content of a package of own metrics, for its author."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaluation.core.metric_specs import RuleMetric
from evaluation.judging.calls import Family


@dataclass(frozen=True, slots=True)
class MetricPackage:
    """Own metrics of one package. The entry point in the group ``concord.metrics`` names an instance.

    ``rule_metrics``: functions declared with ``rule_metric``. ``families``: rubric families of judge metrics.
    ``rubrics``: folder with ``FAMILY.en.yaml`` and ``FAMILY.ko.yaml`` of each family."""

    rule_metrics: tuple[RuleMetric, ...] = ()
    families: tuple[Family, ...] = ()
    rubrics: Path | None = None
