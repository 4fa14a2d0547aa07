"""Exact agreement."""

from __future__ import annotations

import numpy as np

from review.agreement.pairs import Confusion
from review.agreement.statistic import Figures, ratio


def exact(table: Confusion) -> Figures:
    """The share of pairs with the same category, 0 to 1: ``sum_i c_ii / sum_ij c_ij``."""
    return ratio(np.trace(table.cells, axis1=-2, axis2=-1), table.total)
