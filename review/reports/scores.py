"""The two sides of a run, what the judge said of each answer and the values that count after review, and the overall
score of one side by the profile's arithmetic, with its interval.

Intervals of judge-only and reviewed figures say how far they would vary over other questions like these, and nothing
about errors of the judge."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from evaluation.core.samples import BY_JUDGE_ALONE, Status, reason_code
from evaluation.core.scales import Scale
from evaluation.profiles.arithmetic import Label, Overall, PartMean, overall_from_means, unit_of
from evaluation.profiles.per_answer import AnswerOverall, PartValue, overall_from_answers, overall_of_answer
from evaluation.profiles.spec import OnFailure, Part, ProfileSpec, Unit
from review.evidence.answers import RunAnswer
from review.evidence.effective import RunValues, Said
from review.reports.figure import Figure, withheld
from review.statistics.agreement.statistic import Array, Indices, Undefined
from review.statistics.correction.outcome import clustered_variance, group_freedom, t_quantile


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of a run with what they were made of."""

    machine: Side
    reviewed: Side
    found: RunValues


class Value(Protocol):
    """One metric of one answer on one side; ``status`` is ``None`` while there is no result."""

    @property
    def status(self) -> Status | None: ...
    @property
    def value(self) -> float | None: ...
    @property
    def label(self) -> str | None: ...
    @property
    def reason(self) -> str: ...


class _Unsaid(NamedTuple):
    status: Status | None = None
    value: float | None = None
    label: str | None = None
    reason: str = ""


UNSAID: Value = _Unsaid()


def column(values: Iterable[float | None]) -> Array:
    """The values in their order, NaN for none."""
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


_NUMBERS: Mapping[Status | None, int] = {status: at for at, status in enumerate((None, *Status))}


@dataclass(frozen=True, slots=True)
class MetricValues:
    """A metric's values for some answers, in their order, with their numbers (NaN where there is none) and statuses as
    columns; ``group`` numbers the groups of answers that are not independent."""

    name: str
    scale: Scale
    answers: Sequence[RunAnswer]
    group: Indices
    values: Sequence[Value]
    number: Array
    status: Indices

    @classmethod
    def of(
        cls, name: str, scale: Scale, answers: Sequence[RunAnswer], group: Indices, values: Sequence[Value]
    ) -> MetricValues:
        """With the columns of the values."""
        number = column(one.value for one in values)
        status = np.array([_NUMBERS[one.status] for one in values], dtype=np.int64)
        return cls(name, scale, answers, group, values, number, status)

    def count(self, status: Status | None) -> int:
        """How many have the status."""
        return len(self.places(status))

    def places(self, status: Status | None) -> Indices:
        """Where the values with the status stand."""
        return np.flatnonzero(self.status == _NUMBERS[status])

    @property
    def numbered(self) -> Indices:
        """Where the values with a number stand."""
        return np.flatnonzero(~np.isnan(self.number))

    @property
    def numbers(self) -> list[tuple[RunAnswer, float]]:
        """The scored numbers with their answers."""
        places = self.numbered
        return [(self.answers[at], x) for at, x in zip(places.tolist(), self.number[places].tolist(), strict=True)]

    @property
    def labels(self) -> list[str]:
        """The scored labels."""
        return [value.label for value in self.values if value.label is not None] if self.scale.labels else []

    def part_mean(self) -> PartMean:
        """The mean as profile arithmetic reads it. Only for metrics with numbers."""
        numbers = self.number[self.numbered].tolist()
        mean = sum(numbers) / len(numbers) if numbers else None
        failed, left_out = self.count(Status.FAILED), self.count(Status.NOT_APPLICABLE)
        reasons = [self.values[at].reason for at in self.places(Status.NOT_APPLICABLE).tolist()]
        unconfirmed = sum(reason_code(reason) in BY_JUDGE_ALONE for reason in reasons)
        return PartMean(self.name, mean, len(numbers), failed, left_out, self.scale.low, self.scale.high, unconfirmed)

    def at(self, places: Indices, answers: Sequence[RunAnswer]) -> MetricValues:
        """The same of the ``answers`` at these places."""
        values = [self.values[at] for at in places.tolist()]
        columns = (self.number[places], self.status[places])
        return MetricValues(self.name, self.scale, answers, self.group[places], values, *columns)


@dataclass(frozen=True, slots=True)
class Side:
    """All metrics the run computed, on one side, by name; ``group`` numbers the groups of the answers."""

    answers: Sequence[RunAnswer]
    group: Indices
    metrics: dict[str, MetricValues]

    def part_means(self) -> list[PartMean]:
        """The means of every metric with numbers."""
        return [one.part_mean() for one in self.metrics.values() if not one.scale.labels]

    def part_values(self, profile: ProfileSpec) -> list[list[PartValue]]:
        """Per answer, the values of the profile's metrics, as per-answer arithmetic reads them; pending ones are
        left out."""
        wanted = [one for name, one in self.metrics.items() if name in profile.metrics and not one.scale.labels]
        places = range(len(self.answers))
        return [[_part_value(one, one.values[at]) for one in wanted if one.values[at].status] for at in places]

    def at(self, places: Indices) -> Side:
        """The same of the answers at these places."""
        if len(places) == len(self.answers):  # a run of a single category, say, is not held twice
            return self
        answers = [self.answers[at] for at in places.tolist()]
        return Side(answers, self.group[places], {name: one.at(places, answers) for name, one in self.metrics.items()})


def sides_of(said: Said, found: RunValues) -> Sides:
    """What the rule or the primary judge said of the answers, as it came, and the values that count."""
    answers, (group, _) = list(said.answers.values()), said.groups
    machine: dict[str, MetricValues] = {}
    reviewed: dict[str, MetricValues] = {}
    for metric in sorted((found.metrics[pk] for pk in found.computed), key=lambda metric: metric.name):
        about = metric.name, metric.read_scale(), answers, group
        effective = list(found.values[metric.pk].values())  # in the answers' order
        machine[metric.name] = MetricValues.of(*about, [one.judged or UNSAID for one in effective])
        reviewed[metric.name] = MetricValues.of(*about, effective)
    return Sides(Side(answers, group, machine), Side(answers, group, reviewed), found)


def _part_value(metric: MetricValues, value: Value) -> PartValue:
    status = value.status or Status.NOT_APPLICABLE
    reason = "" if status is Status.SCORED else value.reason
    return PartValue(metric.name, status, metric.scale.low, metric.scale.high, value.value, reason)


def by_category(answers: Sequence[RunAnswer]) -> dict[str, Indices]:
    """Category -> where its answers stand, in the order categories first appear."""
    found: dict[str, list[int]] = {}
    for at, answer in enumerate(answers):
        found.setdefault(answer.category, []).append(at)
    return {name: np.array(places, dtype=np.int64) for name, places in found.items()}


QUESTIONS_LIKE_THESE = "questions_like_these"
CONFIDENCE = 0.95
_NO_VARIANCE = 1e-18


@dataclass(frozen=True, slots=True)
class Summand:
    """A mean with the weight it has in a sum: of ``values``, whose answers stand at ``places`` of the answers asked of;
    ``low`` and ``high`` are the ends of its scale."""

    places: Indices
    values: Array
    low: float
    high: float
    weight: float = 1.0

    @property
    def mean(self) -> float:
        """The plain mean; there is at least one value."""
        return math.fsum(self.values.tolist()) / len(self.values)


def figure_over_questions(
    summands: Sequence[Summand],
    group: Indices,
    n: int,
    *,
    constant: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Figure:
    """The sum of weight x mean plus ``constant``, with an interval for questions like these; ``group`` numbers the
    groups of the answers.

    Every answer's influence is ``sum_j w_j (x_ij - mean_j) / n_j``; influences are summed by group, because answers to
    one question (or about one document) are not independent, and their cluster-robust variance gives a t interval
    with one degree of freedom less than there are groups, fewer where their sizes differ (linearisation,
    W. G. Cochran, 1977, Sampling Techniques, 6). The interval is cut at the ends of the scale. Without variation or
    with a single group there is none.
    """
    value = constant + sum(one.weight * one.mean for one in summands)
    influence, used = np.zeros(len(group)), np.zeros(len(group), dtype=np.bool_)
    for one in summands:
        influence[one.places] += one.weight * (one.values - one.mean) / len(one.values)
        used[one.places] = True
    variance, sizes = clustered_variance(influence[used], group[used])
    if len(sizes) < 2:
        return Figure(value, target=QUESTIONS_LIKE_THESE, n=n, no_interval=str(Undefined.TOO_FEW_GROUPS))
    if variance <= _NO_VARIANCE:
        return Figure(value, target=QUESTIONS_LIKE_THESE, n=n, no_interval=str(Undefined.NO_VARIATION))
    half = t_quantile(0.5 + confidence / 2, group_freedom(sizes)) * math.sqrt(variance)
    ends = [sorted((one.weight * one.low, one.weight * one.high)) for one in summands]
    least, most = (constant + sum(pair[at] for pair in ends) for at in (0, 1))
    return Figure(value, max(value - half, least), min(value + half, most), QUESTIONS_LIKE_THESE, n)


NEGATIVE = "negative"  # questions whose right answer is to abstain or correct


@dataclass(frozen=True, slots=True)
class SideScore:
    """What the profile makes of one side: the outcome of its arithmetic, the figure with its interval, and for
    per-answer profiles each answer's own score. The figure is withheld only for reasons of the arithmetic; whether it
    may be called the overall score is ``outcome.label``."""

    outcome: Overall
    figure: Figure
    answers: Sequence[AnswerOverall] = ()


def score_side(
    profile: ProfileSpec, side: Side, *, all_parts: bool = False, confidence: float = CONFIDENCE
) -> SideScore:
    """The overall figure of one side; ``all_parts`` as for a category: none unless every part exists there."""
    if profile.unit is Unit.PER_ANSWER:
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


def summand(profile: ProfileSpec, part: Part, metric: MetricValues, weight: float) -> Summand:
    """A part's values on the profile's unit scale, failures as 0 where the profile counts them so."""
    zero, width = unit_of(profile, part, metric.scale.low, metric.scale.high)
    places = metric.numbered
    values = metric.number[places]
    if profile.on_failure is OnFailure.ZERO:
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
    values = column(one.value for one in answers)
    scored = np.flatnonzero(~np.isnan(values))
    whole = Summand(scored, values[scored], 0.0, 1.0)
    figure = figure_over_questions([whole], side.group, len(scored), confidence=confidence)
    return _bounded(outcome, figure, answers)


def _without_value(outcome: Overall, n: int, answers: Sequence[AnswerOverall] = ()) -> SideScore:
    return _bounded(outcome, withheld(outcome.reason or str(Label.NONE), n), answers)


def _bounded(outcome: Overall, figure: Figure, answers: Sequence[AnswerOverall] = ()) -> SideScore:
    return SideScore(outcome, dataclasses.replace(figure, worst=outcome.low, best=outcome.high), answers)
