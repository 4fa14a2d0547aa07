"""What a derived metric is: a pure function from the results of one answer to a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evaluation.core.registry import MetricSpec
from evaluation.core.samples import Result


@dataclass(frozen=True, slots=True)
class DerivedMetric:
    """A description whose ``inputs`` are names of metrics, and the function that computes it from their results."""

    spec: MetricSpec
    compute: Callable[[Mapping[str, Result]], Result]
