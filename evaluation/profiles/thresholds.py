"""Thresholds and bands of a profile. Both compare after rounding to 1e-9.

Which answers pass under a profile: every threshold met and no automatic failure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluation.profiles.interpretation import Band
from evaluation.profiles.means import rounded
from evaluation.profiles.spec import ProfileSpec


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


class Passing(StrEnum):
    """Whether an answer passes. ``unknown``: a part failed and nothing else decides."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PassOrFail:
    """Whether an answer passes, and the thresholds (by metric, or ``overall``) and flags for which it does not.
    ``status`` is by threshold, ``None`` where there is no value to compare."""

    verdict: Passing
    below: tuple[str, ...]
    flags: tuple[str, ...]
    status: Mapping[str, bool | None]


def has_passing(profile: ProfileSpec) -> bool:
    """Whether answers can pass or fail under the profile."""
    return bool(profile.thresholds or profile.automatic_failures)


def pass_or_fail(
    profile: ProfileSpec, values: Mapping[str, float | None], flags: Collection[str], *, lost: bool = False
) -> PassOrFail:
    """Whether an answer passes.

    ``values`` are by metric, and ``overall``, ``None`` where the result failed; a metric that does not apply to the
    answer is left out and its threshold not asked for. ``flags`` are the verdicts of the answer's flags; ``lost``: they
    could not be computed.
    """
    asked = {name: threshold for name, threshold in profile.thresholds.items() if name in values}
    status = {
        name: None if (value := values[name]) is None else meets(value, threshold) for name, threshold in asked.items()
    }
    raised = tuple(one.flag for one in profile.automatic_failures if one.flag in flags)
    below = tuple(name for name, met in status.items() if met is False)
    if below or raised:
        verdict = Passing.FAILED
    elif None in status.values() or (lost and profile.automatic_failures) or not status:
        verdict = Passing.UNKNOWN
    else:
        verdict = Passing.PASSED
    return PassOrFail(verdict, below, raised, status)
