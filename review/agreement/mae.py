"""Mean absolute error."""

from __future__ import annotations

import numpy as np

from review.agreement.pairs import Pairs
from review.agreement.statistic import Figures, ratio


def mae(pairs: Pairs) -> Figures:
    """The mean of ``|judge - expert|`` in units of the scale, with the experts' unrounded mean; 0 is best."""
    return ratio(pairs.weight @ np.abs(pairs.judge - pairs.expert), pairs.total)
