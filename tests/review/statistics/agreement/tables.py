"""Small confusion matrices and pairs for hand-worked tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from review.statistics.agreement.layout import Confusion, Pairs


def table(cells: Sequence[Sequence[float]], values: Sequence[float] | None = None) -> Confusion:
    """Confusion matrix with experts in rows; values 0, 1, 2, ... by default."""
    return Confusion(np.array(cells, dtype=float), np.array(values or range(len(cells)), dtype=float))


def pairs(judge: Sequence[float], expert: Sequence[float], weight: Sequence[float] | None = None) -> Pairs:
    """Pairs of values, each of weight 1 by default."""
    return Pairs(
        np.array(judge, dtype=float),
        np.array(expert, dtype=float),
        np.ones(len(judge)) if weight is None else np.array(weight, dtype=float),
    )
