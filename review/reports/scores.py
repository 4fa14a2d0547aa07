"""Judge side and reviewed side of a run, and overall scores by the profile's arithmetic with intervals.

Intervals of judge-only and reviewed figures cover variation over similar questions, not errors of the judge."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from evaluation.core.samples import JUDGE_ONLY_REASONS, Status, reason_code
from evaluation.core.scales import Scale
from evaluation.profiles.arithmetic import FigureLabel, Overall, PartMean, overall_from_means, unit_scale
from evaluation.profiles.per_answer import AnswerOverall, PartValue, overall_from_answers, overall_of_answer
from evaluation.profiles.spec import FailureRule, OverallUnit, ProfilePart, ProfileSpec
from review.evidence.answers import RunAnswer
from review.evidence.effective import RunEvidence, RunValues
from review.reports.figure import Figure, withheld
from review.statistics.agreement.statistic import Array, Indices, Undefined
from review.statistics.correction.outcome import clustered_variance, group_freedom
from review.statistics.student_t import t_quantile


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of a run with the effective values behind them."""

    machine: Side
    reviewed: Side
    run_values: RunValues


class SideValue(Protocol):
    """Value of a metric for one answer on one side. ``status`` is ``None`` while there is no result."""

    @property
    def status(self) -> Status | None: ...
    @property
    def value(self) -> float | None: ...
    @property
    def label(self) -> str | None: ...
    @property
    def reason(self) -> str: ...


class _NoValue(NamedTuple):
    status: Status | None = None
    value: float | None = None
    label: str | None = None
    reason: str = ""


NO_VALUE: SideValue = _NoValue()


def column(values: Iterable[float | None]) -> Array:
    """Array of the values in order, NaN for ``None``."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


_STATUS_NUMBERS: Mapping[Status | None, int] = {status: number for number, status in enumerate((None, *Status))}


@dataclass(frozen=True, slots=True)
class MetricValues:
    """A metric's values for some answers, in order, with numbers (NaN if missing) and statuses as columns.

    ``group`` numbers groups of dependent answers."""

    name: str
    scale: Scale
    answers: Sequence[RunAnswer]
    group: Indices
    values: Sequence[SideValue]
    number: Array
    status: Indices

    @classmethod
    def of(
        cls, name: str, scale: Scale, answers: Sequence[RunAnswer], group: Indices, values: Sequence[SideValue]
    ) -> MetricValues:
        number = column(value.value for value in values)
        status = np.array([_STATUS_NUMBERS[value.status] for value in values], dtype=np.int64)
        return cls(name, scale, answers, group, values, number, status)

    def count(self, status: Status | None) -> int:
        return len(self.places(status))

    def places(self, status: Status | None) -> Indices:
        return np.flatnonzero(self.status == _STATUS_NUMBERS[status])

    @property
    def numbered(self) -> Indices:
        """Indices of the values with a number."""
        return np.flatnonzero(~np.isnan(self.number))

    @property
    def numbers(self) -> list[tuple[RunAnswer, float]]:
        places = self.numbered
        return [
            (self.answers[place], x) for place, x in zip(places.tolist(), self.number[places].tolist(), strict=True)
        ]

    @property
    def labels(self) -> list[str]:
        return [value.label for value in self.values if value.label is not None] if self.scale.labels else []

    def part_mean(self) -> PartMean:
        """Mean for the profile arithmetic. Requires a metric with numbers."""
        numbers = self.number[self.numbered].tolist()
        mean = sum(numbers) / len(numbers) if numbers else None
        failed, not_applicable = self.count(Status.FAILED), self.count(Status.NOT_APPLICABLE)
        reasons = [self.values[place].reason for place in self.places(Status.NOT_APPLICABLE).tolist()]
        unconfirmed = sum(reason_code(reason) in JUDGE_ONLY_REASONS for reason in reasons)
        return PartMean(
            self.name, mean, len(numbers), failed, not_applicable, self.scale.low, self.scale.high, unconfirmed
        )

    def subset(self, places: Indices, answers: Sequence[RunAnswer]) -> MetricValues:
        """Restrict the values to ``answers``, which are at ``places``."""
        values = [self.values[place] for place in places.tolist()]
        columns = (self.number[places], self.status[places])
        return MetricValues(self.name, self.scale, answers, self.group[places], values, *columns)


@dataclass(frozen=True, slots=True)
class Side:
    """Computed metrics of one side by name. ``group`` numbers groups of dependent answers."""

    answers: Sequence[RunAnswer]
    group: Indices
    metrics: dict[str, MetricValues]

    def part_means(self) -> list[PartMean]:
        return [metric.part_mean() for metric in self.metrics.values() if not metric.scale.labels]

    def part_values(self, profile: ProfileSpec) -> list[list[PartValue]]:
        """Values of the profile's metrics per answer for per-answer arithmetic, without pending ones."""
        metrics = [
            metric for name, metric in self.metrics.items() if name in profile.metrics and not metric.scale.labels
        ]
        places = range(len(self.answers))
        return [
            [_part_value(metric, metric.values[index]) for metric in metrics if metric.values[index].status]
            for index in places
        ]

    def subset(self, places: Indices) -> Side:
        # Avoid a copy if a run has a single category.
        if len(places) == len(self.answers):
            return self
        answers = [self.answers[place] for place in places.tolist()]
        return Side(
            answers, self.group[places], {name: metric.subset(places, answers) for name, metric in self.metrics.items()}
        )


def sides_of(evidence: RunEvidence, run_values: RunValues) -> Sides:
    """Build the judge side (primary judge or rule) and the reviewed side (effective values)."""
    answers, (group, _) = list(evidence.answers.values()), evidence.groups
    machine: dict[str, MetricValues] = {}
    reviewed: dict[str, MetricValues] = {}
    for metric in sorted((run_values.metrics[pk] for pk in run_values.computed), key=lambda metric: metric.name):
        common = metric.name, metric.read_scale(), answers, group
        # Values are in the order of the answers.
        effective = list(run_values.values[metric.pk].values())
        machine[metric.name] = MetricValues.of(*common, [value.judged or NO_VALUE for value in effective])
        reviewed[metric.name] = MetricValues.of(*common, effective)
    return Sides(Side(answers, group, machine), Side(answers, group, reviewed), run_values)


def _part_value(metric: MetricValues, value: SideValue) -> PartValue:
    status = value.status or Status.NOT_APPLICABLE
    reason = "" if status is Status.SCORED else value.reason
    return PartValue(metric.name, status, metric.scale.low, metric.scale.high, value.value, reason)


def places_by_category(answers: Sequence[RunAnswer]) -> dict[str, Indices]:
    """Map each category, in order of appearance, to the indices of its answers."""
    indices: dict[str, list[int]] = {}
    for index, answer in enumerate(answers):
        indices.setdefault(answer.category, []).append(index)
    return {name: np.array(places, dtype=np.int64) for name, places in indices.items()}


QUESTIONS_LIKE_THESE = "questions_like_these"
CONFIDENCE = 0.95
_NO_VARIANCE = 1e-18


@dataclass(frozen=True, slots=True)
class Summand:
    """A weighted mean in a sum: ``values`` of the answers at ``places``, on a scale from ``low`` to ``high``."""

    places: Indices
    values: Array
    low: float
    high: float
    weight: float = 1.0

    @property
    def mean(self) -> float:
        """Arithmetic mean. Requires at least one value."""
        return math.fsum(self.values.tolist()) / len(self.values)


def figure_over_questions(
    summands: Sequence[Summand],
    group: Indices,
    n: int,
    *,
    constant: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Figure:
    """Sum of weight times mean plus ``constant``, with an interval for questions like these.

    ``group`` numbers the groups of the answers. An answer's influence is ``sum_j w_j (x_ij - mean_j) / n_j``.
    Influences are summed by group, because answers to one question (or about one document) are dependent. Their
    cluster-robust variance gives a t interval with one degree of freedom less than there are groups, fewer if group
    sizes differ (linearisation, W. G. Cochran, 1977, Sampling Techniques, 6). The interval is cut at the ends of the
    scale. It is undefined without variation or with a single group."""
    value = constant + sum(term.weight * term.mean for term in summands)
    influence, used = np.zeros(len(group)), np.zeros(len(group), dtype=np.bool_)
    for term in summands:
        influence[term.places] += term.weight * (term.values - term.mean) / len(term.values)
        used[term.places] = True
    variance, sizes = clustered_variance(influence[used], group[used])
    if len(sizes) < 2:
        return Figure(value, target=QUESTIONS_LIKE_THESE, n=n, no_interval=str(Undefined.TOO_FEW_GROUPS))
    if variance <= _NO_VARIANCE:
        return Figure(value, target=QUESTIONS_LIKE_THESE, n=n, no_interval=str(Undefined.NO_VARIATION))
    half = t_quantile(0.5 + confidence / 2, group_freedom(sizes)) * math.sqrt(variance)
    ends = [sorted((term.weight * term.low, term.weight * term.high)) for term in summands]
    minimum, maximum = (constant + sum(pair[end] for pair in ends) for end in (0, 1))
    return Figure(value, max(value - half, minimum), min(value + half, maximum), QUESTIONS_LIKE_THESE, n)


# Category of questions whose right answer is to abstain or to correct.
NEGATIVE = "negative"


@dataclass(frozen=True, slots=True)
class SideScore:
    """Profile arithmetic of one side: its outcome, the figure with interval, and each answer's score for per-answer
    profiles.

    The figure is withheld only for arithmetic reasons. ``outcome.label`` tells whether it is a complete overall score.
    """

    outcome: Overall
    figure: Figure
    answers: Sequence[AnswerOverall] = ()


def score_side(
    profile: ProfileSpec, side: Side, *, all_parts: bool = False, confidence: float = CONFIDENCE
) -> SideScore:
    """Overall figure of one side. With ``all_parts``, as for categories, every part must exist."""
    if profile.unit is OverallUnit.PER_ANSWER:
        return _per_answer(profile, side, all_parts, confidence)
    outcome = overall_from_means(profile, side.part_means(), all_parts=all_parts)
    if outcome.value is None:
        return _without_value(outcome, len(side.answers))
    parts = {part.metric: part for part in profile.parts}
    summands = [
        summand(profile, parts[name], side.metrics[name], weight) for name, weight in outcome.weights_used.items()
    ]
    n, constant = len(side.answers), profile.constant
    figure = figure_over_questions(summands, side.group, n, constant=constant, confidence=confidence)
    return _bounded(outcome, figure)


def summand(profile: ProfileSpec, part: ProfilePart, metric: MetricValues, weight: float) -> Summand:
    """A part on the profile's unit scale. Failures count as 0 if the profile says so."""
    zero, width = unit_scale(profile, part, metric.scale.low, metric.scale.high)
    places = metric.numbered
    values = metric.number[places]
    if profile.on_failure is FailureRule.ZERO:
        failed = metric.places(Status.FAILED)
        places, values = np.concatenate([places, failed]), np.concatenate([values, np.zeros(len(failed))])
    low, high = ((end - zero) / width for end in (metric.scale.low, metric.scale.high))
    return Summand(places, (values - zero) / width, low, high, weight)


def _per_answer(profile: ProfileSpec, side: Side, all_parts: bool, confidence: float) -> SideScore:
    answers = [
        overall_of_answer(profile, values, category=answer.category, answerable=answer.category != NEGATIVE)
        for answer, values in zip(side.answers, side.part_values(profile), strict=True)
    ]
    outcome = overall_from_answers(profile, answers, list(side.metrics), all_parts=all_parts)
    if outcome.value is None:
        return _without_value(outcome, len(side.answers), answers)
    values = column(score.value for score in answers)
    scored = np.flatnonzero(~np.isnan(values))
    whole = Summand(scored, values[scored], 0.0, 1.0)
    figure = figure_over_questions([whole], side.group, len(scored), confidence=confidence)
    return _bounded(outcome, figure, answers)


def _without_value(outcome: Overall, n: int, answers: Sequence[AnswerOverall] = ()) -> SideScore:
    return _bounded(outcome, withheld(outcome.reason or str(FigureLabel.NONE), n), answers)


def _bounded(outcome: Overall, figure: Figure, answers: Sequence[AnswerOverall] = ()) -> SideScore:
    return SideScore(outcome, dataclasses.replace(figure, worst=outcome.low, best=outcome.high), answers)
