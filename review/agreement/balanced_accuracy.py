"""Balanced accuracy."""

from __future__ import annotations

from review.agreement.pairs import Confusion
from review.agreement.statistic import Figures
from review.agreement.true_negative_rate import true_negative_rate
from review.agreement.true_positive_rate import true_positive_rate


def balanced_accuracy(table: Confusion) -> Figures:
    """Mean of the true positive and the true negative rate, 0 to 1, 0.5 as by chance; undefined where the experts
    used one class only. The table has two categories, the second being acceptable."""
    positive, negative = true_positive_rate(table), true_negative_rate(table)
    return Figures((positive.values + negative.values) / 2.0, positive.defined & negative.defined)
