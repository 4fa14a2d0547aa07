"""Thresholds and bands of a profile. Both compare after rounding to 1e-9."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.profiles.interpretation import Band
from evaluation.profiles.means import rounded


def meets(value: float, threshold: float) -> bool:
    """Whether the value is at least the threshold."""
    return rounded(value) >= rounded(threshold)


def band_of(bands: Sequence[Band], value: float) -> Band | None:
    """The band that holds the value: the highest that starts below it; ``None`` under the lowest."""
    reached = [band for band in bands if _reaches(value, band)]
    return max(reached, key=lambda band: band.start, default=None)


def _reaches(value: float, band: Band) -> bool:
    start, only_above = band.start
    return rounded(value) > rounded(start) if only_above else meets(value, start)
