"""The overall score of a run under a profile (the run-mean profiles; ``per_answer.py`` has the others), and how a
profile reads its figures: bands, which answers pass, and the field of a table. All compare after rounding to 1e-9.

The weights are fixed once per run. Parts that are not applicable to the whole run are left out and the others
renormalised, which the result names. Where parts were not computed at all (no judge), the figure is a labelled partial
one and never the overall score. Above 10% failed results of a part there is no figure, only bounds. Results that are
not applicable by the judge's word alone count towards that limit, because they take the part's weight out of the score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from evaluation.metrics.catalogue import is_rule_metric
from evaluation.profiles.spec import Axis, Band, Cell, Normalise, OnFailure, Part, ProfileSpec, Table

TOLERANCE_DIGITS = 9
MOST_FAILED = 0.10  # above this share of failed results a run has no headline, only bounds


@dataclass(frozen=True, slots=True)
class PartMean:
    """A metric over the answers of a run: the mean of the scored results on the metric's own scale, how many results
    have which status, and the scale's ends. ``unconfirmed`` of the not applicable ones are so by the judge's word
    alone.

    :raises ValueError: when the mean is there without scored results, missing with them, or off the scale.
    """

    metric: str
    mean: float | None
    scored: int
    failed: int
    not_applicable: int
    low: float
    high: float
    unconfirmed: int = 0

    def __post_init__(self) -> None:
        if min(self.scored, self.failed, self.not_applicable - self.unconfirmed, self.unconfirmed) < 0:
            raise ValueError(f"{self.metric}: a count below 0")
        if not self.low < self.high:
            raise ValueError(f"{self.metric}: the scale's low end {self.low} is not below its high end {self.high}")
        if (self.mean is None) != (self.scored == 0):
            raise ValueError(f"{self.metric}: a mean needs scored results, and scored results have a mean")
        if self.mean is not None and not (math.isfinite(self.mean) and self.low <= rounded(self.mean) <= self.high):
            raise ValueError(f"{self.metric}: the mean {self.mean} is not on the scale {self.low}..{self.high}")

    @property
    def applicable(self) -> int:
        """Results the metric should have given: scored and failed."""
        return self.scored + self.failed

    @property
    def too_many_failed(self) -> bool:
        """Whether more than 10% of the results that should be there failed or are unconfirmed."""
        return rounded(lost_share(self.scored, self.failed, self.unconfirmed)) > MOST_FAILED


def lost_share(scored: int, failed: int, unconfirmed: int) -> float:
    """The failed and unconfirmed results among those that should be there, 0 where there are none."""
    due = scored + failed + unconfirmed
    return (failed + unconfirmed) / due if due else 0.0


def rounded(value: float) -> float:
    """The value as thresholds, bands and grades compare it: 0.35 x 0.9 + ... must not fail at .7999999."""
    return round(value, TOLERANCE_DIGITS)


def on_unit_scale(profile: ProfileSpec, part: Part, value: float, low: float, high: float) -> float:
    """A value of the metric's scale ``low..high`` as the profile adds it up, usually 0-1.

    :raises ValueError: when ``by_max`` has nothing above 0 to divide by.
    """
    zero, width = unit_of(profile, part, low, high)
    return (value - zero) / width


def unit_of(profile: ProfileSpec, part: Part, low: float, high: float) -> tuple[float, float]:
    """What is taken off a value of the scale ``low..high``, and what the rest is divided by, to put it on the unit
    scale of the profile.

    :raises ValueError: when ``by_max`` has nothing above 0 to divide by.
    """
    if profile.normalise is Normalise.MIN_MAX:
        return low, high - low
    top = part.top if part.top is not None else high
    if top <= 0:
        raise ValueError(f"{part.metric}: by_max divides by the scale's upper end, which is {top}")
    return 0.0, top


def counted_mean(profile: ProfileSpec, mean: PartMean) -> float:
    """The mean that enters the overall score: failures left out, or counted as 0 where the profile says so.

    :raises ValueError: when no result counts.
    """
    if profile.on_failure is OnFailure.ZERO and mean.applicable:
        return (mean.mean or 0.0) * mean.scored / mean.applicable
    if mean.mean is None:
        raise ValueError(f"{mean.metric}: no scored result")
    return mean.mean


def worst_and_best(profile: ProfileSpec, mean: PartMean) -> tuple[float, float]:
    """The mean had every failed result been the worst, or the best, of the scale (0 if the profile counts it so).

    :raises ValueError: when the metric has neither scored nor failed results.
    """
    if not mean.applicable:
        raise ValueError(f"{mean.metric}: no result")
    total = (mean.mean or 0.0) * mean.scored
    worst = worst_value(profile, mean.low)
    return (total + mean.failed * worst) / mean.applicable, (total + mean.failed * mean.high) / mean.applicable


def worst_value(profile: ProfileSpec, low: float) -> float:
    """The lowest value a failed result may stand for."""
    return min(low, 0.0) if profile.on_failure is OnFailure.ZERO else low


class Label(StrEnum):
    """What the figure may be called."""

    OVERALL_SCORE = "overall_score"
    RULES_ONLY = "rules_only"  # shown with its weight: "rules only, weight 0.40"
    PARTIAL = "partial"  # likewise, where more than the rules is there
    NONE = "none"


class Gap(StrEnum):
    """Why a part is not in the figure."""

    ABSENT = "absent"  # the run did not compute it
    NOT_APPLICABLE = "not_applicable"  # no question of the run has input for it


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A part of the profile that is not in the figure, with the weight it would have had."""

    metric: str
    weight: float
    gap: Gap


@dataclass(frozen=True, slots=True)
class Overall:
    """The overall figure of a run or a category.

    ``value`` is ``None`` with a ``reason``: ``failed_share``, ``missing_parts``, ``no_parts`` or ``no_overall`` (the
    profile has none), with metric names as detail. ``weight`` is the share of the profile's weight (constant
    included) that the parts in the figure have; ``weights_used`` are their weights after renormalisation. ``low`` and
    ``high`` are the worst and best figures had the failed results been at the ends of their scales, ``None`` where
    nothing failed. ``failed`` names the parts with failed results.
    """

    value: float | None
    label: Label
    reason: str = ""
    weight: float = 0.0
    weights_used: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[MissingPart, ...] = ()
    failed: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


def overall_from_means(profile: ProfileSpec, means: Sequence[PartMean], *, all_parts: bool = False) -> Overall:
    """The overall figure from the means of a run.

    ``means`` holds one entry for each metric the run computed, whether it gave results or not; metrics that are not
    parts are passed over. ``all_parts``: give no figure unless every part is there, as for a category.

    :raises ValueError: when a metric is given twice.
    """
    by_metric = {mean.metric: mean for mean in means}
    if len(by_metric) != len(means):
        raise ValueError("a metric is given twice")
    present = [part for part in profile.parts if part.metric in by_metric and by_metric[part.metric].applicable]
    missing = missing_parts(profile, present, by_metric)
    if nothing := no_figure(profile, missing, all_parts=all_parts, empty=not present):
        return nothing
    weights = renormalised(profile, present)
    there = [(part, by_metric[part.metric]) for part in present]

    def weighted(figure: Callable[[ProfileSpec, PartMean], float]) -> list[float]:
        return [
            weights[part.metric] * on_unit_scale(profile, part, figure(profile, mean), mean.low, mean.high)
            for part, mean in there
        ]

    failed = tuple(mean.metric for _, mean in there if mean.failed)
    incomplete = [mean.metric for _, mean in there if mean.too_many_failed]
    return Overall(
        value=None if incomplete else profile.constant + sum(weighted(counted_mean)),
        label=label_of(present, missing),
        reason=named_reason("failed_share", incomplete) if incomplete else "",
        weight=weight_of(profile, present),
        weights_used=weights,
        missing=missing,
        failed=failed,
        low=sum(weighted(lambda *of: worst_and_best(*of)[0]), profile.constant) if failed else None,
        high=sum(weighted(lambda *of: worst_and_best(*of)[1]), profile.constant) if failed else None,
    )


def no_figure(
    profile: ProfileSpec, missing: tuple[MissingPart, ...], *, all_parts: bool, empty: bool
) -> Overall | None:
    """Why there is no figure at all, if so: the profile has none, no part is there (``empty``), or not all are."""
    if not profile.parts:
        return Overall(None, Label.NONE, "no_overall")
    if empty:
        return Overall(None, Label.NONE, "no_parts", missing=missing)
    if all_parts and missing:
        return Overall(None, Label.NONE, named_reason("missing_parts", [m.metric for m in missing]), missing=missing)
    return None


def renormalised(profile: ProfileSpec, present: Sequence[Part]) -> Mapping[str, float]:
    """The weights of the parts that are there, scaled so that they sum to 1 with the constant."""
    total = sum(part.weight for part in present)
    if len(present) == len(profile.parts):
        return MappingProxyType({part.metric: part.weight for part in present})
    return MappingProxyType({part.metric: part.weight / total * (1 - profile.constant) for part in present})


def weight_of(profile: ProfileSpec, present: Sequence[Part]) -> float:
    """The share of the profile's weight that the parts have, the constant counted as present."""
    return sum(part.weight for part in present) + profile.constant


def missing_parts(
    profile: ProfileSpec, present: Sequence[Part], computed: Mapping[str, object]
) -> tuple[MissingPart, ...]:
    """The parts that are not present: absent where the run did not compute them, else not applicable."""
    there = {part.metric for part in present}
    return tuple(
        MissingPart(part.metric, part.weight, Gap.NOT_APPLICABLE if part.metric in computed else Gap.ABSENT)
        for part in profile.parts
        if part.metric not in there
    )


def label_of(present: Sequence[Part], missing: Sequence[MissingPart]) -> Label:
    """What a figure of these parts may be called: the overall score only where the run computed every part."""
    if not any(part.gap is Gap.ABSENT for part in missing):
        return Label.OVERALL_SCORE
    return Label.RULES_ONLY if all(is_rule_metric(part.metric) for part in present) else Label.PARTIAL


def named_reason(code: str, names: Sequence[str]) -> str:
    """A reason code with names as its detail."""
    return f"{code}: {', '.join(names)}"


def meets(value: float, threshold: float) -> bool:
    """Whether the value is at least the threshold."""
    return rounded(value) >= rounded(threshold)


def band_of(bands: Sequence[Band], value: float) -> Band | None:
    """The band that holds the value: the highest that starts below it; ``None`` under the lowest."""

    def reaches(start: float, only_above: bool) -> bool:
        return rounded(value) > rounded(start) if only_above else meets(value, start)

    return max((band for band in bands if reaches(*band.start)), key=lambda band: band.start, default=None)


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
