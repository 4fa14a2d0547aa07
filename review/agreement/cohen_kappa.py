"""Cohen's kappa, plain and weighted."""

from __future__ import annotations

import numpy as np

from review.agreement.pairs import Confusion
from review.agreement.statistic import Array, Figures, one_minus, ratio


def cohen_kappa(table: Confusion) -> Figures:
    """Agreement beyond chance, at most 1, 0 as by chance: ``1 - sum d_ij c_ij / sum d_ij e_ij`` with ``d_ij`` = 1 off
    the diagonal and ``e`` the product of both sides' totals over the total weight. Undefined where both sides used
    one and the same category only. Source: J. Cohen (1960), Educ. Psychol. Meas. 20.
    """
    return _kappa(table, 1.0 - np.eye(len(table.values)))


def cohen_kappa_linear(table: Confusion) -> Figures:
    """Kappa with disagreement weighed by the distance of the values, ``d_ij = |v_i - v_j|``.

    Source: J. Cohen (1968), Psychol. Bull. 70.
    """
    return _kappa(table, table.distances())


def cohen_kappa_quadratic(table: Confusion) -> Figures:
    """Kappa with disagreement weighed by the squared distance of the values, ``d_ij = (v_i - v_j)^2``.

    Source: J. Cohen (1968), Psychol. Bull. 70.
    """
    return _kappa(table, np.square(table.distances()))


def _kappa(table: Confusion, disagreement: Array) -> Figures:
    total = table.total
    observed = (table.cells * disagreement).sum(axis=(-2, -1)) * total
    expected = np.einsum("...i,ij,...j->...", table.expert_totals, disagreement, table.judge_totals)
    return one_minus(ratio(observed, expected))
