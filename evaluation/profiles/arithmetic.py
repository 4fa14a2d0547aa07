"""The overall score of a run from its means (``per_answer.py`` has per-answer profiles), and the reading of figures:
bands, passing answers, and cells of diagnosis tables. All comparisons round to 1e-9.

Weights are fixed once per run. Parts that do not apply to the whole run are left out and the others renormalised, which
the result names. If parts were not computed at all (no judge), the figure is labelled as partial and is never the
overall score. Above 10% failed results of a part there are only bounds. Results that are not applicable by the judge's
word only count towards that limit, because they take the part's weight out of the score."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from evaluation.metrics.catalogue import is_rule_metric
from evaluation.profiles.spec import (
    DiagnosisTable,
    FailureRule,
    Normalisation,
    ProfilePart,
    ProfileSpec,
    ScoreBand,
    TableAxis,
    TableCell,
)

TOLERANCE_DIGITS = 9
# Above this share of failed results a run has only bounds.
MAX_FAILED_SHARE = 0.10


@dataclass(frozen=True, slots=True)
class PartMean:
    """A metric over the answers of a run: the mean of the scored results on the metric's own scale, counts by status,
    and the ends of the scale. ``unconfirmed`` of the not applicable results are so by the judge's word only.

    :raises ValueError: if the mean is given without scored results, missing with them, or off the scale."""

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
        if self.mean is not None and not (
            math.isfinite(self.mean) and self.low <= round_for_comparison(self.mean) <= self.high
        ):
            raise ValueError(f"{self.metric}: the mean {self.mean} is not on the scale {self.low}..{self.high}")

    @property
    def applicable(self) -> int:
        """The results the metric should have given: scored and failed."""
        return self.scored + self.failed

    @property
    def too_many_failed(self) -> bool:
        """Return whether more than 10% of the expected results failed or are unconfirmed."""
        return round_for_comparison(lost_share(self.scored, self.failed, self.unconfirmed)) > MAX_FAILED_SHARE


def lost_share(scored: int, failed: int, unconfirmed: int) -> float:
    """The share of failed and unconfirmed results among the expected ones, 0 to 1; 0 if none is expected."""
    expected = scored + failed + unconfirmed
    return (failed + unconfirmed) / expected if expected else 0.0


def round_for_comparison(value: float) -> float:
    """Round to 1e-9 before comparing with thresholds and bands, so that floating-point sums such as .7999999 do not
    fail."""
    return round(value, TOLERANCE_DIGITS)


def on_unit_scale(profile: ProfileSpec, part: ProfilePart, value: float, low: float, high: float) -> float:
    """A value of the scale ``low..high`` on the profile's unit scale, usually 0 to 1.

    :raises ValueError: if ``by_max`` would divide by 0 or less."""
    zero, width = unit_scale(profile, part, low, high)
    return (value - zero) / width


def unit_scale(profile: ProfileSpec, part: ProfilePart, low: float, high: float) -> tuple[float, float]:
    """Offset and divisor that put a value of the scale ``low..high`` on the profile's unit scale.

    :raises ValueError: if ``by_max`` would divide by 0 or less."""
    if profile.normalise is Normalisation.MIN_MAX:
        return low, high - low
    top = part.top if part.top is not None else high
    if top <= 0:
        raise ValueError(f"{part.metric}: by_max divides by the scale's upper end, which is {top}")
    return 0.0, top


def effective_mean(profile: ProfileSpec, mean: PartMean) -> float:
    """The mean used in the overall score: failures left out, or counted as 0 if the profile says so.

    :raises ValueError: if no result counts."""
    if profile.on_failure is FailureRule.ZERO and mean.applicable:
        return (mean.mean or 0.0) * mean.scored / mean.applicable
    if mean.mean is None:
        raise ValueError(f"{mean.metric}: no scored result")
    return mean.mean


def worst_and_best_mean(profile: ProfileSpec, mean: PartMean) -> tuple[float, float]:
    """The means if every failed result were at the worst, or the best, end of the scale (0 if the profile counts it
    so).

    :raises ValueError: if the metric has neither scored nor failed results."""
    if not mean.applicable:
        raise ValueError(f"{mean.metric}: no result")
    total = (mean.mean or 0.0) * mean.scored
    worst = worst_value(profile, mean.low)
    return (total + mean.failed * worst) / mean.applicable, (total + mean.failed * mean.high) / mean.applicable


def worst_value(profile: ProfileSpec, low: float) -> float:
    """The lowest possible value of a failed result."""
    return min(low, 0.0) if profile.on_failure is FailureRule.ZERO else low


class FigureLabel(StrEnum):
    """The label of an overall figure."""

    OVERALL_SCORE = "overall_score"
    # Shown with its weight: "rules only, weight 0.40".
    RULES_ONLY = "rules_only"
    # Shown with its weight; has more than the rules.
    PARTIAL = "partial"
    NONE = "none"


class MissingReason(StrEnum):
    """The reason why a part is not in the figure."""

    # The run did not compute it.
    ABSENT = "absent"
    # No question of the run has input for it.
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A part of the profile that is not in the figure, with its weight."""

    metric: str
    weight: float
    gap: MissingReason


@dataclass(frozen=True, slots=True)
class Overall:
    """The overall figure of a run or a category.

    ``value`` is ``None`` with a ``reason``: ``failed_share``, ``missing_parts``, ``no_parts`` or ``no_overall`` (the
    profile has none), with metric names as detail. ``weight`` is the share of the profile's weight (constant included)
    that the parts in the figure have; ``weights_used`` are their weights after renormalisation. ``low`` and ``high``
    are the worst and best figures had the failed results been at the ends of their scales, ``None`` where nothing
    failed. ``failed`` names the parts with failed results."""

    value: float | None
    label: FigureLabel
    reason: str = ""
    weight: float = 0.0
    weights_used: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[MissingPart, ...] = ()
    failed: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


def overall_from_means(profile: ProfileSpec, means: Sequence[PartMean], *, all_parts: bool = False) -> Overall:
    """The overall figure from the means of a run.

    ``means`` has one entry for each metric the run computed, with or without results; metrics that are not parts are
    ignored. ``all_parts``: give no figure unless every part is present, as for a category.

    :raises ValueError: if a metric is given twice."""
    by_metric = {mean.metric: mean for mean in means}
    if len(by_metric) != len(means):
        raise ValueError("a metric is given twice")
    present = [part for part in profile.parts if part.metric in by_metric and by_metric[part.metric].applicable]
    missing = missing_parts(profile, present, by_metric)
    if withheld := withheld_overall(profile, missing, all_parts=all_parts, empty=not present):
        return withheld
    weights = renormalised_weights(profile, present)
    present_means = [(part, by_metric[part.metric]) for part in present]

    def weighted(figure: Callable[[ProfileSpec, PartMean], float]) -> list[float]:
        return [
            weights[part.metric] * on_unit_scale(profile, part, figure(profile, mean), mean.low, mean.high)
            for part, mean in present_means
        ]

    failed = tuple(mean.metric for _, mean in present_means if mean.failed)
    incomplete = [mean.metric for _, mean in present_means if mean.too_many_failed]
    return Overall(
        value=None if incomplete else profile.constant + sum(weighted(effective_mean)),
        label=label_of(present, missing),
        reason=reason_with_names("failed_share", incomplete) if incomplete else "",
        weight=included_weight(profile, present),
        weights_used=weights,
        missing=missing,
        failed=failed,
        low=sum(weighted(lambda *of: worst_and_best_mean(*of)[0]), profile.constant) if failed else None,
        high=sum(weighted(lambda *of: worst_and_best_mean(*of)[1]), profile.constant) if failed else None,
    )


def withheld_overall(
    profile: ProfileSpec, missing: tuple[MissingPart, ...], *, all_parts: bool, empty: bool
) -> Overall | None:
    """An overall without a value, with its reason, or ``None``: the profile has no score, no part is present
    (``empty``), or not all are."""
    if not profile.parts:
        return Overall(None, FigureLabel.NONE, "no_overall")
    if empty:
        return Overall(None, FigureLabel.NONE, "no_parts", missing=missing)
    if all_parts and missing:
        return Overall(
            None, FigureLabel.NONE, reason_with_names("missing_parts", [m.metric for m in missing]), missing=missing
        )
    return None


def renormalised_weights(profile: ProfileSpec, present: Sequence[ProfilePart]) -> Mapping[str, float]:
    """The weights of the present parts, scaled to sum to 1 with the constant."""
    total = sum(part.weight for part in present)
    if len(present) == len(profile.parts):
        return MappingProxyType({part.metric: part.weight for part in present})
    return MappingProxyType({part.metric: part.weight / total * (1 - profile.constant) for part in present})


def included_weight(profile: ProfileSpec, present: Sequence[ProfilePart]) -> float:
    """The share of the profile's weight in the present parts, including the constant; 0 to 1."""
    return sum(part.weight for part in present) + profile.constant


def missing_parts(
    profile: ProfileSpec, present: Sequence[ProfilePart], computed: Mapping[str, object]
) -> tuple[MissingPart, ...]:
    """The parts that are not present: absent if the run did not compute them, else not applicable."""
    present_metrics = {part.metric for part in present}
    return tuple(
        MissingPart(
            part.metric, part.weight, MissingReason.NOT_APPLICABLE if part.metric in computed else MissingReason.ABSENT
        )
        for part in profile.parts
        if part.metric not in present_metrics
    )


def label_of(present: Sequence[ProfilePart], missing: Sequence[MissingPart]) -> FigureLabel:
    """The label of a figure of these parts: the overall score only if the run computed every part."""
    if not any(part.gap is MissingReason.ABSENT for part in missing):
        return FigureLabel.OVERALL_SCORE
    return FigureLabel.RULES_ONLY if all(is_rule_metric(part.metric) for part in present) else FigureLabel.PARTIAL


def reason_with_names(code: str, names: Sequence[str]) -> str:
    """A reason code with names as its detail."""
    return f"{code}: {', '.join(names)}"


def meets(value: float, threshold: float) -> bool:
    return round_for_comparison(value) >= round_for_comparison(threshold)


def band_of(bands: Sequence[ScoreBand], value: float) -> ScoreBand | None:
    """The highest band that starts at or below the value; ``None`` below the lowest."""

    def starts_below(start: float, only_above: bool) -> bool:
        return round_for_comparison(value) > round_for_comparison(start) if only_above else meets(value, start)

    return max((band for band in bands if starts_below(*band.start)), key=lambda band: band.start, default=None)


class PassVerdict(StrEnum):
    """The verdict on an answer. ``unknown``: a part failed and nothing else decides."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PassResult:
    """The verdict on an answer, with the thresholds (by metric, or ``overall``) and flags that it fails. ``status`` is
    by threshold, ``None`` without a value to compare."""

    verdict: PassVerdict
    below: tuple[str, ...]
    flags: tuple[str, ...]
    status: Mapping[str, bool | None]


def has_passing(profile: ProfileSpec) -> bool:
    """Return whether the profile decides which answers pass."""
    return bool(profile.thresholds or profile.automatic_failures)


def pass_or_fail(
    profile: ProfileSpec, values: Mapping[str, float | None], flags: Collection[str], *, flags_unavailable: bool = False
) -> PassResult:
    """Decide whether an answer passes.

    ``values`` are by metric, and ``overall``, ``None`` for failed results; a metric that does not apply to the answer
    is left out, and its threshold does not apply. ``flags`` are the verdicts of the answer's flags;
    ``flags_unavailable`` is true if they could not be computed."""
    thresholds = {name: threshold for name, threshold in profile.thresholds.items() if name in values}
    status = {
        name: None if (value := values[name]) is None else meets(value, threshold)
        for name, threshold in thresholds.items()
    }
    raised_flags = tuple(failure.flag for failure in profile.automatic_failures if failure.flag in flags)
    below = tuple(name for name, met in status.items() if met is False)
    if below or raised_flags:
        verdict = PassVerdict.FAILED
    elif None in status.values() or (flags_unavailable and profile.automatic_failures) or not status:
        verdict = PassVerdict.UNKNOWN
    else:
        verdict = PassVerdict.PASSED
    return PassResult(verdict, below, raised_flags, status)


def is_axis_high(axis: TableAxis, values: Mapping[str, float | None]) -> bool | None:
    """Return whether every metric of the axis reaches its start. ``None`` (unknown) if one has no value, unless another
    is low."""
    reached = [None if (value := values.get(name)) is None else meets(value, axis.at_least) for name in axis.metrics]
    if False in reached:
        return False
    return None if None in reached else True


def cell_of(table: DiagnosisTable, values: Mapping[str, float | None]) -> TableCell | None:
    """The cell of the table; ``None`` if an axis is unknown."""
    high_by_axis = {axis.name: is_axis_high(axis, values) for axis in table.axes}
    if None in high_by_axis.values():
        return None
    high = {name for name, side in high_by_axis.items() if side}
    return next(cell for cell in table.cells if set(cell.high) == high)
