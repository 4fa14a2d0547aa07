"""Thresholds and bands of a profile. Both compare after rounding to 1e-9."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.profiles.means import rounded
from evaluation.profiles.spec import Band, ProfileSpec


def meets(value: float, threshold: float) -> bool:
    """Whether the value is at least the threshold."""
    return rounded(value) >= rounded(threshold)


def passes(profile: ProfileSpec, values: Mapping[str, float | None]) -> bool | None:
    """Whether every threshold is met, each by the value of its metric or of ``overall``.

    ``None``, unknown, where a value is missing (a failed part is unknown, not a fail) and the others are met, or
    where the profile has no thresholds; false as soon as one is not met.
    """
    results = [
        None if (value := values.get(name)) is None else meets(value, threshold)
        for name, threshold in profile.thresholds.items()
    ]
    if False in results:
        return False
    return True if results and None not in results else None


def band_of(profile: ProfileSpec, value: float) -> Band | None:
    """The band that holds the value: the highest that starts at or below it; ``None`` below the lowest."""
    reached = [band for band in profile.bands if meets(value, band.at_least)]
    return max(reached, key=lambda band: band.at_least, default=None)
