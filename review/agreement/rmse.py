"""Root mean squared error."""

from __future__ import annotations

import numpy as np

from review.agreement.pairs import Pairs
from review.agreement.statistic import Figures, ratio


def rmse(pairs: Pairs) -> Figures:
    """The root of the mean of ``(judge - expert)^2`` in units of the scale; large errors weigh more than in the MAE."""
    squared = ratio(pairs.weight @ np.square(pairs.judge - pairs.expert), pairs.total)
    return Figures(np.sqrt(squared.values), squared.defined)
