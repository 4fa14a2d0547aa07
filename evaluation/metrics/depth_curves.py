"""Retrieval metrics at every depth, for curves: means over questions of ``evaluation.metrics.retrieval`` for each k,
computed with numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.retrieval import Ranking

#: Metrics with curves, in display order.
CURVES = ("precision_at_k", "recall_at_k", "hit_at_k", "reciprocal_rank", "ndcg_at_k", "average_precision_at_k")


def means_by_depth(rankings: Sequence[Ranking], depth: int) -> Mapping[str, tuple[float, ...]]:
    """Mean of each metric at k = 1 to ``depth``. Positions beyond a ranking are empty.

    :raises ValueError: without rankings."""
    if not rankings:
        raise ValueError("there is nothing to take a mean of")
    gains = np.zeros((len(rankings), depth))
    for row, ranked in enumerate(rankings):
        own_gains = ranked.gains[:depth]
        gains[row, : len(own_gains)] = own_gains
    relevant = np.array([[ranked.relevant] for ranked in rankings], float)
    ranks = np.arange(1, depth + 1)
    hits = gains.cumsum(axis=1)
    discounts = 1 / np.log2(ranks + 1)
    ideals = np.where(ranks <= relevant, discounts, 0.0).cumsum(axis=1)
    first = np.where(hits.any(axis=1), gains.argmax(axis=1) + 1.0, np.inf)[:, None]
    figures: dict[str, NDArray[np.float64]] = {
        "precision_at_k": hits / ranks,
        "recall_at_k": hits / relevant,
        "hit_at_k": (hits > 0).astype(float),
        "reciprocal_rank": np.where(ranks >= first, 1 / first, 0.0),
        "ndcg_at_k": (gains * discounts).cumsum(axis=1) / ideals,
        "average_precision_at_k": (gains * hits / ranks).cumsum(axis=1) / relevant,
    }
    return {name: tuple(map(float, figures[name].mean(axis=0))) for name in CURVES}
