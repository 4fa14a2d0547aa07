"""How a profile reads its figures: bands, which answers pass (every threshold met and no automatic failure), and the
field of a table that high and low figures fall into. All compare after rounding to 1e-9.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluation.profiles.arithmetic import rounded
from evaluation.profiles.spec import Axis, Band, Cell, ProfileSpec, Table


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


def is_high(axis: Axis, values: Mapping[str, float | None]) -> bool | None:
    """Whether every metric of the axis reaches its start. ``None``, unknown, where one has no value, unless another is
    low already."""
    found = [None if (value := values.get(name)) is None else meets(value, axis.at_least) for name in axis.metrics]
    if False in found:
        return False
    return None if None in found else True


def cell_of(table: Table, values: Mapping[str, float | None]) -> Cell | None:
    """The field of the table; ``None`` where an axis is unknown."""
    sides = {axis.name: is_high(axis, values) for axis in table.axes}
    if None in sides.values():
        return None
    high = {name for name, side in sides.items() if side}
    return next(cell for cell in table.cells if set(cell.high) == high)
