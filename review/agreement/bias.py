"""Bias: does the judge give more or less than the experts?"""

from __future__ import annotations

from review.agreement.pairs import Pairs
from review.agreement.statistic import Figures, ratio


def bias(pairs: Pairs) -> Figures:
    """The mean of ``judge - expert`` in units of the scale; positive where the judge is more generous."""
    return ratio(pairs.weight @ (pairs.judge - pairs.expert), pairs.total)
