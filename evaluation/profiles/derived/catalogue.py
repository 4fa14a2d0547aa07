"""The list of derived metrics: what is not listed here does not exist."""

from __future__ import annotations

from evaluation.profiles.derived import ragas_score
from evaluation.profiles.derived.metric import DerivedMetric

DERIVED_METRICS: tuple[DerivedMetric, ...] = (ragas_score.METRIC,)
