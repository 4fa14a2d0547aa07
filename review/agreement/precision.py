"""Precision."""

from __future__ import annotations

from review.agreement.pairs import Confusion
from review.agreement.statistic import Figures, ratio


def precision(table: Confusion) -> Figures:
    """Of the answers the judge accepts, the share acceptable to the experts: ``TP / (TP + FP)``, 0 to 1.

    Undefined where the judge accepted none. The table has two categories, the second being acceptable.
    """
    return ratio(table.cells[..., 1, 1], table.judge_totals[..., 1])
