"""Gwet's AC1 and AC2: chance-corrected agreement that keeps its sense where nearly all values are alike."""

from __future__ import annotations

import numpy as np

from review.agreement.coincidences import Coincidences
from review.agreement.statistic import Array, Figures, ratio


def gwet_ac1(table: Coincidences) -> Figures:
    """AC1, at most 1, 0 as by chance; every disagreement counts alike. See :func:`_ac`."""
    return _ac(table, np.eye(len(table.values)))


def gwet_ac2(table: Coincidences) -> Figures:
    """AC2 with quadratic weights ``1 - (v_k - v_l)^2 / (v_max - v_min)^2`` over the declared scale. See :func:`_ac`."""
    return _ac(table, 1.0 - np.square(table.distances() / np.ptp(table.values)))


def _ac(table: Coincidences, agreement: Array) -> Figures:
    """``(p_a - p_e) / (1 - p_e)`` with ``p_a`` the weighted share of agreeing rating pairs and ``p_e = T / (q (q - 1))
    sum_k pi_k (1 - pi_k)``, T being the sum of the weights and q the number of declared categories.

    Source: K. L. Gwet (2014), Handbook of Inter-Rater Reliability, 4th edition, chapters 4 and 5.
    """
    size = len(table.values)
    observed = (table.shares * agreement).sum(axis=(-2, -1))
    spread = (table.prevalence * (1.0 - table.prevalence)).sum(axis=-1)
    expected = agreement.sum() / (size * (size - 1)) * spread
    return ratio(observed - expected, np.where(table.pairable > 0, 1.0 - expected, 0.0))
