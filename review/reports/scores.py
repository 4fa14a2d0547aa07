"""The two sides of a run, what the judge said of each answer and the values that count after review, and the overall
score of one side by the profile's arithmetic, with its interval.

Intervals of judge-only and reviewed figures say how far they would vary over other questions like these, and nothing
about errors of the judge."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evaluation.core.registry import Scale
from evaluation.core.samples import Status
from evaluation.profiles.arithmetic import Label, Overall, PartMean, on_unit_scale, overall_from_means
from evaluation.profiles.per_answer import BY_ANSWER, AnswerOverall, PartValue, overall_from_answers, overall_of_answer
from evaluation.profiles.spec import OnFailure, Part, ProfileSpec, Unit
from review.evidence.answers import RunAnswer
from review.evidence.effective import Effective, RunValues
from review.evidence.scorers import Judged
from review.reports.figure import Figure, withheld
from review.statistics.agreement.statistic import Undefined
from review.statistics.correction.outcome import clustered_variance, group_freedom, t_quantile


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of a run with what they were made of."""

    machine: Side
    reviewed: Side
    found: RunValues


class Value(NamedTuple):
    """One metric of one answer on one side; ``status`` is ``None`` while there is no result."""

    status: Status | None
    value: float | None = None
    label: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MetricValues:
    """A metric's values for some answers, in their order."""

    name: str
    scale: Scale
    answers: Sequence[RunAnswer]
    values: Sequence[Value]

    def count(self, status: Status | None) -> int:
        """How many have the status."""
        return sum(value.status is status for value in self.values)

    @property
    def numbers(self) -> list[tuple[RunAnswer, float]]:
        """The scored numbers with their answers."""
        return [(a, v.value) for a, v in zip(self.answers, self.values, strict=True) if v.value is not None]

    @property
    def labels(self) -> list[str]:
        """The scored labels."""
        return [value.label for value in self.values if value.label is not None]

    def part_mean(self) -> PartMean:
        """The mean as profile arithmetic reads it. Only for metrics with numbers."""
        numbers = [number for _, number in self.numbers]
        mean = sum(numbers) / len(numbers) if numbers else None
        failed, left_out = self.count(Status.FAILED), self.count(Status.NOT_APPLICABLE)
        return PartMean(self.name, mean, len(numbers), failed, left_out, self.scale.low, self.scale.high)

    def within(self, answers: frozenset[int]) -> MetricValues:
        """The same of some of the answers."""
        kept = [(a, v) for a, v in zip(self.answers, self.values, strict=True) if a.answer_id in answers]
        return MetricValues(self.name, self.scale, [a for a, _ in kept], [v for _, v in kept])


@dataclass(frozen=True, slots=True)
class Side:
    """All metrics the run computed, on one side, by name."""

    answers: Sequence[RunAnswer]
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

    def within(self, answers: frozenset[int]) -> Side:
        """The same of some of the answers."""
        kept = [answer for answer in self.answers if answer.answer_id in answers]
        return Side(kept, {name: one.within(answers) for name, one in self.metrics.items()})


def side_of(answers: Sequence[RunAnswer], found: RunValues, convert: Callable[[Effective | None], Value]) -> Side:
    """What was said of the answers: :func:`as_judged` or :func:`as_effective`."""
    metrics: dict[str, MetricValues] = {}
    for pk in found.computed:
        metric = found.metrics[pk]
        values = [convert(found.values.get((answer.answer_id, pk))) for answer in answers]
        metrics[metric.name] = MetricValues(metric.name, metric.read_scale(), answers, values)
    return Side(answers, dict(sorted(metrics.items())))


def as_judged(effective: Effective | None) -> Value:
    """What the rule or the primary judge said, as it came."""
    return _read(effective.judged if effective else None)


def as_effective(effective: Effective | None) -> Value:
    """The value that counts."""
    return _read(effective)


def _read(said: Judged | Effective | None) -> Value:
    return Value(None) if said is None else Value(said.status, said.value, said.label, said.reason)


def _part_value(metric: MetricValues, value: Value) -> PartValue:
    by_answer = value.reason.partition(":")[0] in BY_ANSWER
    status = value.status or Status.NOT_APPLICABLE
    return PartValue(metric.name, status, metric.scale.low, metric.scale.high, value.value, by_answer)


def categories_of(answers: Iterable[RunAnswer]) -> dict[str, frozenset[int]]:
    """Category -> its answers, in the order categories first appear."""
    found: dict[str, set[int]] = {}
    for answer in answers:
        found.setdefault(answer.category, set()).add(answer.answer_id)
    return {name: frozenset(ids) for name, ids in found.items()}


QUESTIONS_LIKE_THESE = "questions_like_these"
CONFIDENCE = 0.95
_NO_VARIANCE = 1e-18


@dataclass(frozen=True, slots=True)
class Summand:
    """A mean with the weight it has in a sum; ``low`` and ``high`` are the ends of its scale."""

    values: Sequence[tuple[RunAnswer, float]]
    low: float
    high: float
    weight: float = 1.0

    @property
    def mean(self) -> float:
        """The plain mean; there is at least one value."""
        return math.fsum(value for _, value in self.values) / len(self.values)


def figure_over_questions(
    summands: Sequence[Summand], n: int, *, constant: float = 0.0, confidence: float = CONFIDENCE
) -> Figure:
    """The sum of weight x mean plus ``constant``, with an interval for questions like these.

    Every answer's influence is ``sum_j w_j (x_ij - mean_j) / n_j``; influences are summed by group, because answers to
    one question (or about one document) are not independent, and their cluster-robust variance gives a t interval
    with one degree of freedom less than there are groups, fewer where their sizes differ (linearisation,
    W. G. Cochran, 1977, Sampling Techniques, 6). The interval is cut at the ends of the scale. Without variation or
    with a single group there is none.
    """
    value = constant + sum(one.weight * one.mean for one in summands)
    influence: dict[int, float] = {}
    group: dict[int, Hashable] = {}
    for one in summands:
        mean, size = one.mean, len(one.values)
        for answer, x in one.values:
            influence[answer.answer_id] = influence.get(answer.answer_id, 0.0) + one.weight * (x - mean) / size
            group[answer.answer_id] = answer.group
    variance, sizes = clustered_variance(np.array(list(influence.values())), list(group.values()))
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
    figure = figure_over_questions(summands, len(side.answers), constant=profile.constant, confidence=confidence)
    return _bounded(outcome, figure)


def summand(profile: ProfileSpec, part: Part, metric: MetricValues, weight: float) -> Summand:
    """A part's values on the profile's unit scale, failures as 0 where the profile counts them so."""
    low, high = metric.scale.low, metric.scale.high
    values = [(answer, on_unit_scale(profile, part, number, low, high)) for answer, number in metric.numbers]
    if profile.on_failure is OnFailure.ZERO:
        zero = on_unit_scale(profile, part, 0.0, low, high)
        pairs = zip(metric.answers, metric.values, strict=True)
        values += [(answer, zero) for answer, value in pairs if value.status is Status.FAILED]
    ends = (on_unit_scale(profile, part, low, low, high), on_unit_scale(profile, part, high, low, high))
    return Summand(values, *ends, weight=weight)


def _per_answer(profile: ProfileSpec, side: Side, all_parts: bool, confidence: float) -> SideScore:
    answers = [
        overall_of_answer(profile, values, category=answer.category, answerable=answer.category != NEGATIVE)
        for answer, values in zip(side.answers, side.part_values(profile), strict=True)
    ]
    outcome = overall_from_answers(profile, answers, list(side.metrics), all_parts=all_parts)
    if outcome.value is None:
        return _without_value(outcome, len(side.answers), answers)
    scored: list[tuple[RunAnswer, float]] = [
        (answer, one.value) for answer, one in zip(side.answers, answers, strict=True) if one.value is not None
    ]
    figure = figure_over_questions([Summand(scored, 0.0, 1.0)], len(scored), confidence=confidence)
    return _bounded(outcome, figure, answers)


def _without_value(outcome: Overall, n: int, answers: Sequence[AnswerOverall] = ()) -> SideScore:
    return _bounded(outcome, withheld(outcome.reason or str(Label.NONE), n), answers)


def _bounded(outcome: Overall, figure: Figure, answers: Sequence[AnswerOverall] = ()) -> SideScore:
    return SideScore(outcome, dataclasses.replace(figure, worst=outcome.low, best=outcome.high), answers)
