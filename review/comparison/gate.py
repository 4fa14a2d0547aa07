"""The gate: does an interval settle the question?"""

from __future__ import annotations

from enum import StrEnum


class GateVerdict(StrEnum):
    """``cannot_tell`` where the limit lies inside the interval: more labels or questions would settle it."""

    PASSED = "pass"
    FAILED = "fail"
    CANNOT_TELL = "cannot_tell"


def fail_under(low: float, high: float, limit: float) -> GateVerdict:
    """A score's interval against the least score wanted: passes when all of it is at least the limit, fails when all
    of it is below."""
    if low >= limit:
        return GateVerdict.PASSED
    return GateVerdict.FAILED if high < limit else GateVerdict.CANNOT_TELL


def max_drop(low: float, high: float, drop: float) -> GateVerdict:
    """The interval of this run minus the baseline against the largest drop allowed (not negative): passes when all
    of it is at least ``-drop``, fails when all of it is below."""
    if drop < 0:
        raise ValueError("the largest drop is not negative")
    return fail_under(low, high, -drop)
