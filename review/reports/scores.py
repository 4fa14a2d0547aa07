"""The overall score of one side of a run, by the profile's arithmetic, with its interval."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.samples import Status
from evaluation.profiles.arithmetic import Label, Overall, overall_from_means
from evaluation.profiles.means import on_unit_scale
from evaluation.profiles.per_answer import AnswerOverall, overall_from_answers, overall_of_answer
from evaluation.profiles.spec import OnFailure, Part, ProfileSpec, Unit
from review.evidence.answers import RunAnswer
from review.reports.figure import Figure, withheld
from review.reports.values import MetricValues, Side
from review.reports.variation import Summand, figure_over_questions

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
