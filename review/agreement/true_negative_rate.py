"""True negative rate (specificity)."""

from __future__ import annotations

from review.agreement.pairs import Confusion
from review.agreement.statistic import Figures, ratio


def true_negative_rate(table: Confusion) -> Figures:
    """Of the answers the experts rejected, the share the judge rejects: ``TN / (TN + FP)``, 0 to 1.

    Undefined where the experts rejected none. The table has two categories, the second being acceptable.
    """
    return ratio(table.cells[..., 0, 0], table.expert_totals[..., 0])
