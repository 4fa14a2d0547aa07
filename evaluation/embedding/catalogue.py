"""The metrics that need embeddings and no judge: what is not listed here does not exist."""

from __future__ import annotations

from evaluation.core.registry import MetricSpec
from evaluation.embedding import bert_score, similarity

EMBEDDING_METRICS: tuple[MetricSpec, ...] = (similarity.SPEC, bert_score.SPEC)
EMBEDDING_NAMES = frozenset(spec.name for spec in EMBEDDING_METRICS)
