"""Agreement within one level."""

from __future__ import annotations

import numpy as np

from review.agreement.pairs import Confusion
from review.agreement.statistic import Figures, ratio


def within_one(table: Confusion) -> Figures:
    """The share of pairs whose values differ by at most 1, 0 to 1."""
    near = table.distances() <= 1.0
    return ratio(np.asarray((table.cells * near).sum(axis=(-2, -1))), table.total)
