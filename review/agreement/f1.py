"""F1."""

from __future__ import annotations

import numpy as np

from review.agreement.pairs import Confusion
from review.agreement.statistic import Figures, ratio


def f1(table: Confusion) -> Figures:
    """Harmonic mean of precision and recall, 0 to 1: ``2 TP / (2 TP + FP + FN)``; undefined where nobody accepted
    anything. The table has two categories, the second being acceptable."""
    return ratio(2.0 * table.cells[..., 1, 1], np.asarray(table.expert_totals[..., 1] + table.judge_totals[..., 1]))
