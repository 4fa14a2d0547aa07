"""Yes or no: sensitivity, specificity, precision, F1, balanced accuracy.

True positive rate (sensitivity, recall).

True negative rate (specificity).

Precision.

F1.

Balanced accuracy.
"""

from __future__ import annotations

import numpy as np

from review.statistics.agreement.pairs import Confusion
from review.statistics.agreement.statistic import Figures, ratio


def true_positive_rate(table: Confusion) -> Figures:
    """Of the answers acceptable to the experts, the share the judge accepts: ``TP / (TP + FN)``, 0 to 1.

    Undefined where the experts accepted none. The table has two categories, the second being acceptable.
    """
    return ratio(table.cells[..., 1, 1], table.expert_totals[..., 1])


def true_negative_rate(table: Confusion) -> Figures:
    """Of the answers the experts rejected, the share the judge rejects: ``TN / (TN + FP)``, 0 to 1.

    Undefined where the experts rejected none. The table has two categories, the second being acceptable.
    """
    return ratio(table.cells[..., 0, 0], table.expert_totals[..., 0])


def precision(table: Confusion) -> Figures:
    """Of the answers the judge accepts, the share acceptable to the experts: ``TP / (TP + FP)``, 0 to 1.

    Undefined where the judge accepted none. The table has two categories, the second being acceptable.
    """
    return ratio(table.cells[..., 1, 1], table.judge_totals[..., 1])


def f1(table: Confusion) -> Figures:
    """Harmonic mean of precision and recall, 0 to 1: ``2 TP / (2 TP + FP + FN)``; undefined where nobody accepted
    anything. The table has two categories, the second being acceptable."""
    return ratio(2.0 * table.cells[..., 1, 1], np.asarray(table.expert_totals[..., 1] + table.judge_totals[..., 1]))


def balanced_accuracy(table: Confusion) -> Figures:
    """Mean of the true positive and the true negative rate, 0 to 1, 0.5 as by chance; undefined where the experts
    used one class only. The table has two categories, the second being acceptable."""
    positive, negative = true_positive_rate(table), true_negative_rate(table)
    return Figures((positive.values + negative.values) / 2.0, positive.defined & negative.defined)
