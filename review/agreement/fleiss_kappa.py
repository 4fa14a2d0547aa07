"""Fleiss' kappa for several raters."""

from __future__ import annotations

import numpy as np

from review.agreement.coincidences import Coincidences
from review.agreement.statistic import Figures, ratio


def fleiss_kappa(table: Coincidences) -> Figures:
    """``(p_a - p_e) / (1 - p_e)`` with ``p_e = sum_k pi_k^2``, at most 1, 0 as by chance; gaps as in Gwet (2014).

    Undefined where only one category was used. Source: J. L. Fleiss (1971), Psychol. Bull. 76.
    """
    observed = np.trace(table.shares, axis1=-2, axis2=-1)
    expected = np.square(table.prevalence).sum(axis=-1)
    several = (table.prevalence > 0).sum(axis=-1) > 1
    return ratio(observed - expected, np.where((table.pairable > 0) & several, 1.0 - expected, 0.0))
