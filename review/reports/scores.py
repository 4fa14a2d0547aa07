"""The overall score of one side of a run, by the profile's arithmetic, with its interval.

Intervals of judge-only and reviewed figures say how far they would vary over other questions like these, and nothing
about errors of the judge.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.core.samples import Status
from evaluation.profiles.arithmetic import Label, Overall, on_unit_scale, overall_from_means
from evaluation.profiles.per_answer import AnswerOverall, overall_from_answers, overall_of_answer
from evaluation.profiles.spec import OnFailure, Part, ProfileSpec, Unit
from review.evidence.answers import RunAnswer
from review.reports.figure import Figure, withheld
from review.reports.values import MetricValues, Side
from review.statistics.agreement.statistic import Undefined
from review.statistics.correction.influence import clustered_variance, t_quantile
from review.statistics.correction.interval import group_freedom

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


def figure_over_questions(summands: Sequence[Summand], n: int, *, constant: float = 0.0) -> Figure:
    """The sum of weight x mean plus ``constant``, with a 95% interval for questions like these.

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
    half = t_quantile(0.5 + CONFIDENCE / 2, group_freedom(sizes)) * math.sqrt(variance)
    least = constant + sum(min(one.weight * one.low, one.weight * one.high) for one in summands)
    most = constant + sum(max(one.weight * one.low, one.weight * one.high) for one in summands)
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


def score_side(profile: ProfileSpec, side: Side, *, all_parts: bool = False) -> SideScore:
    """The overall figure of one side; ``all_parts`` as for a category: none unless every part exists there."""
    if profile.unit is Unit.PER_ANSWER:
        return _per_answer(profile, side, all_parts)
    outcome = overall_from_means(profile, side.part_means(), all_parts=all_parts)
    if outcome.value is None:
        return SideScore(outcome, _without_value(outcome, len(side.answers)))
    parts = {part.metric: part for part in profile.parts}
    summands = [
        summand(profile, parts[name], side.metrics[name], weight) for name, weight in outcome.weights_used.items()
    ]
    figure = figure_over_questions(summands, len(side.answers), constant=profile.constant)
    return SideScore(outcome, _bounded(figure, outcome))


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


def _per_answer(profile: ProfileSpec, side: Side, all_parts: bool) -> SideScore:
    answers = [
        overall_of_answer(profile, values, category=answer.category, answerable=answer.category != NEGATIVE)
        for answer, values in zip(side.answers, side.part_values(profile), strict=True)
    ]
    outcome = overall_from_answers(profile, answers, list(side.metrics), all_parts=all_parts)
    if outcome.value is None:
        return SideScore(outcome, _without_value(outcome, len(side.answers)), answers)
    scored: list[tuple[RunAnswer, float]] = [
        (answer, one.value) for answer, one in zip(side.answers, answers, strict=True) if one.value is not None
    ]
    figure = figure_over_questions([Summand(scored, 0.0, 1.0)], len(scored))
    return SideScore(outcome, _bounded(figure, outcome), answers)


def _without_value(outcome: Overall, n: int) -> Figure:
    return dataclasses.replace(withheld(outcome.reason or str(Label.NONE), n), worst=outcome.low, best=outcome.high)


def _bounded(figure: Figure, outcome: Overall) -> Figure:
    return dataclasses.replace(figure, worst=outcome.low, best=outcome.high)
