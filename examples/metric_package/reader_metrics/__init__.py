"""Own metrics for Concord: the share of short sentences by rule, and politeness by a judge."""

from __future__ import annotations

from pathlib import Path

from evaluation.metric_packages.package import MetricPackage
from reader_metrics.politeness import FAMILY
from reader_metrics.short_sentences import short_sentences

PACKAGE = MetricPackage(rule_metrics=(short_sentences,), families=(FAMILY,), rubrics=Path(__file__).parent / "rubrics")
