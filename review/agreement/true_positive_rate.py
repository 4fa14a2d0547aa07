"""True positive rate (sensitivity, recall)."""

from __future__ import annotations

from review.agreement.pairs import Confusion
from review.agreement.statistic import Figures, ratio


def true_positive_rate(table: Confusion) -> Figures:
    """Of the answers acceptable to the experts, the share the judge accepts: ``TP / (TP + FN)``, 0 to 1.

    Undefined where the experts accepted none. The table has two categories, the second being acceptable.
    """
    return ratio(table.cells[..., 1, 1], table.expert_totals[..., 1])
