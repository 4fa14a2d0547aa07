"""Retrieval metrics at every depth at once, for curves: what ``evaluation.metrics.retrieval`` gives for each k, as
means over the questions, computed together in numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics.retrieval import Ranking

#: The names of the metrics whose curves are drawn, in their order.
CURVES = ("precision_at_k", "recall_at_k", "hit_at_k", "reciprocal_rank", "ndcg_at_k", "average_precision_at_k")


def means_by_depth(rankings: Sequence[Ranking], depth: int) -> Mapping[str, tuple[float, ...]]:
    """The mean of each metric at k = 1 to ``depth``. Places beyond a ranking's own are empty.

    :raises ValueError: without any ranking.
    """
    if not rankings:
        raise ValueError("there is nothing to take a mean of")
    gains = np.zeros((len(rankings), depth))
    for row, ranked in enumerate(rankings):
        filled = ranked.gains[:depth]
        gains[row, : len(filled)] = filled
    relevant = np.array([[ranked.relevant] for ranked in rankings], float)
    ranks = np.arange(1, depth + 1)
    found = gains.cumsum(axis=1)
    discounts = 1 / np.log2(ranks + 1)
    ideals = np.where(ranks <= relevant, discounts, 0.0).cumsum(axis=1)
    first = np.where(found.any(axis=1), gains.argmax(axis=1) + 1.0, np.inf)[:, None]
    figures: dict[str, NDArray[np.float64]] = {
        "precision_at_k": found / ranks,
        "recall_at_k": found / relevant,
        "hit_at_k": (found > 0).astype(float),
        "reciprocal_rank": np.where(ranks >= first, 1 / first, 0.0),
        "ndcg_at_k": (gains * discounts).cumsum(axis=1) / ideals,
        "average_precision_at_k": (gains * found / ranks).cumsum(axis=1) / relevant,
    }
    return {name: tuple(map(float, figures[name].mean(axis=0))) for name in CURVES}
