"""The metrics that need embeddings and no judge: what is not listed here does not exist."""

from __future__ import annotations

from evaluation.embedding import bert_score, similarity
from evaluation.registry import MetricSpec

EMBEDDING_METRICS: tuple[MetricSpec, ...] = (similarity.SPEC, bert_score.SPEC)
EMBEDDING_NAMES = frozenset(spec.name for spec in EMBEDDING_METRICS)
