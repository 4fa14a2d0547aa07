"""A run's values by question, which is what two runs have in common: several answers to one question are averaged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from evaluation.profiles.arithmetic import Passing, has_passing
from evaluation.profiles.spec import OVERALL, Part, ProfileSpec, Unit
from review.comparisons.choosing import Side
from review.evidence.answers import RunAnswer
from review.reports.lines import own_scores
from review.reports.profile_section import each_answer, flags_of
from review.reports.scores import MetricValues, SideScore, score_side, summand

Values = Mapping[str, float]


def by_question(values: Iterable[tuple[RunAnswer, float]]) -> dict[str, float]:
    """Question id -> mean over its answers."""
    found: dict[str, list[float]] = {}
    for answer, value in values:
        found.setdefault(answer.question_id, []).append(value)
    return {question: math.fsum(of) / len(of) for question, of in found.items()}


def groups_of(side: Side) -> dict[str, str]:
    """Question id -> group of questions that are not independent."""
    return {answer.question_id: answer.group for answer in side.basis.said.answers.values()}


def machine_score(side: Side, profile: ProfileSpec) -> SideScore:
    """What the judge and rules said of the run, scored under a profile that need not be the run's own."""
    return side.basis.machine if profile == side.basis.profile else score_side(profile, side.basis.sides.machine)


def part_values(side: Side, profile: ProfileSpec) -> dict[str, dict[str, float]]:
    """Part of the score -> question -> judge-only value on the profile's unit scale. A per-answer profile has a single
    part: each answer's own score."""
    if profile.unit is Unit.PER_ANSWER:
        scores = own_scores(profile, side.basis.sides.machine, machine_score(side, profile))
        return {OVERALL: by_question(_known(side, scores))}
    metrics = side.basis.sides.machine.metrics
    found = {
        part.metric: _on_unit(profile, part, metrics[part.metric]) for part in profile.parts if part.metric in metrics
    }
    return {name: values for name, values in found.items() if values}


def part_weights(profile: ProfileSpec, names: Iterable[str]) -> dict[str, float]:
    """The weights of the parts that are compared, scaled to sum to 1 with the constant as the profile does where a
    part is missing."""
    if profile.unit is Unit.PER_ANSWER:
        return {OVERALL: 1.0}
    chosen = set(names)
    weights = {part.metric: part.weight for part in profile.parts if part.metric in chosen}
    total = sum(weights.values())
    return {name: weight / total * (1.0 - profile.constant) for name, weight in weights.items()}


def weight_compared(profile: ProfileSpec, names: Iterable[str]) -> float:
    """The share of the profile's weight that the compared parts have (0 to 1)."""
    if profile.unit is Unit.PER_ANSWER:
        return 1.0
    chosen = set(names)
    return sum(part.weight for part in profile.parts if part.metric in chosen) + profile.constant


def question_scores(side: Side, profile: ProfileSpec) -> dict[str, float]:
    """Question -> its share of the parts that apply to it, 0 to 1, judge-only: it finds the questions that changed."""
    return by_question(_known(side, own_scores(profile, side.basis.sides.machine, machine_score(side, profile))))


def passing(side: Side, profile: ProfileSpec) -> dict[str, float]:
    """Question -> share of its answers that pass under the profile; answers of which that is unknown are left out.
    Empty for a profile that has no rule, or no score of single answers."""
    scores = machine_score(side, profile).answers
    if not has_passing(profile) or not scores:
        return {}
    machine = side.basis.sides.machine
    each = each_answer(profile, machine, scores, flags_of(side.basis.run, profile))
    return by_question(
        (answer, float(one.verdict is Passing.PASSED))
        for answer, one in zip(machine.answers, each, strict=True)
        if one is not None and one.verdict is not Passing.UNKNOWN
    )


def _on_unit(profile: ProfileSpec, part: Part, metric: MetricValues) -> dict[str, float]:
    return {} if metric.scale.labels else by_question(summand(profile, part, metric, part.weight).values)


def _known(side: Side, scores: Iterable[float | None]) -> list[tuple[RunAnswer, float]]:
    answers = side.basis.sides.machine.answers
    return [(answer, score) for answer, score in zip(answers, scores, strict=True) if score is not None]
