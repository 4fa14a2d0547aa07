"""Better, worse, or cannot tell: what an interval of a difference says."""

from __future__ import annotations

from enum import StrEnum

from review.comparison.gate import DIGITS


class Verdict(StrEnum):
    """``cannot_tell`` where no difference lies inside the interval."""

    BETTER = "better"
    WORSE = "worse"
    CANNOT_TELL = "cannot_tell"


def verdict_of(low: float, high: float) -> Verdict:
    """What the interval of this run minus the baseline says, more being better. An end at 0 tells nothing; both are
    compared after rounding to 9 digits."""
    low, high = round(low, DIGITS), round(high, DIGITS)
    if low > 0:
        return Verdict.BETTER
    return Verdict.WORSE if high < 0 else Verdict.CANNOT_TELL
