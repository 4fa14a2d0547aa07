"""Dates as periods: days, weeks or months, whichever tells a story of a readable length."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

LONGEST_IN_DAYS = 14
LONGEST_IN_WEEKS = 120


def period_names(dates: Sequence[date]) -> list[str]:
    """The name of each date's period, such that names sort by time: the day (``2026-11-20``) where all lie within two
    weeks, the ISO week (``2026-W47``) within four months, else the month (``2026-11``)."""
    if not dates:
        return []
    span = (max(dates) - min(dates)).days
    if span < LONGEST_IN_DAYS:
        return [one.isoformat() for one in dates]
    if span < LONGEST_IN_WEEKS:
        return ["{:04}-W{:02}".format(*one.isocalendar()[:2]) for one in dates]
    return [f"{one.year:04}-{one.month:02}" for one in dates]
