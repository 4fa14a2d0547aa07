"""Where ratings vary: between answers, between reviewers, and for reasons nobody knows; and the judge's own noise.

Ratings are taken as ``y = mean + answer + reviewer + taste + rest``, all random and independent: *answer* is the true
difference between answers, *reviewer* how lenient a person is, *taste* how far a person differs on this very answer,
*rest* what the same person would say otherwise another time (hidden repeats). Scores of a judge are ``answer + judge +
noise`` about its own mean: *judge* is how far it is off on an answer whenever it is asked, *noise* how far its repeats
scatter.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from review.statistics.agreement.statistic import Array, Indices, numbered

LEAST_ITEMS = 2


class Source(StrEnum):
    """Why values differ."""

    ANSWERS = "answers"
    REVIEWERS = "reviewers"
    TASTE = "taste"  # reviewer and answer together; with the rest where nobody rated an answer twice
    REST = "rest"
    JUDGE = "judge"
    NOISE = "noise"


class Missing(StrEnum):
    """What a component would need to be told apart."""

    NEEDS_OVERLAP = "needs_overlap"  # answers rated by two people
    NEEDS_TWO_REVIEWERS = "needs_two_reviewers"
    NEEDS_HIDDEN_REPEATS = "needs_hidden_repeats"
    NEEDS_JUDGE_REPEATS = "needs_judge_repeats"
    NEEDS_RATINGS = "needs_ratings"


@dataclass(frozen=True, slots=True)
class Observation:
    """One value that one reviewer gave one answer; several for the same two are repeats."""

    answer: Hashable
    reviewer: str
    value: float


@dataclass(frozen=True, slots=True)
class Design:
    """How much of everything there was: ``answers`` rated, ``reviewers``, ``ratings`` per answer and ``repeats`` of the
    judge per answer (means), ``judged`` answers the judge scored."""

    answers: int
    reviewers: int
    ratings: float
    judged: int
    repeats: float


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """Variances by source, in the squared units of the scale and never negative (a negative estimate means that the
    source shows nothing, and is 0); sources that cannot be told apart are in ``missing``. ``design`` is what the
    estimates come from."""

    variances: Mapping[Source, float]
    missing: Mapping[Source, Missing]
    design: Design


def variance_split(
    ratings: Sequence[Observation], judge: Mapping[Hashable, Sequence[float]] | None = None
) -> VarianceSplit:
    """Split the variance of ratings with gaps and, with the judge's repeats by answer, of its scores.

    Experts: the analysis of variance with unequal numbers (C. R. Henderson, 1953, Biometrics 9, method 1): uncorrected
    sums of squares by answer, by reviewer, by both, in all, and of the mean, set equal to what they are expected to be.
    Judge: the mean squares within answers for the noise; for its own error the variance over answers of judge minus
    experts' mean, less what noise and experts add to it.
    """
    judged = {key: list(values) for key, values in (judge or {}).items() if len(values)}
    variances, missing = _experts(ratings)
    of_judge, missing_judge = _judge(ratings, judged, variances)
    return VarianceSplit(variances | of_judge, missing | missing_judge, _design(ratings, judged))


def _experts(ratings: Sequence[Observation]) -> tuple[dict[Source, float], dict[Source, Missing]]:
    cells = {(one.answer, one.reviewer) for one in ratings}
    answers, reviewers = {a for a, _ in cells}, {r for _, r in cells}
    if len(answers) < LEAST_ITEMS:
        return {}, dict.fromkeys([Source.ANSWERS, Source.REVIEWERS, Source.TASTE], Missing.NEEDS_RATINGS)
    overlap, repeated = len(cells) > len(answers), len(ratings) > len(cells)
    sources, missing = [Source.ANSWERS], {}
    if len(reviewers) < 2:
        missing[Source.REVIEWERS] = Missing.NEEDS_TWO_REVIEWERS
    elif overlap:
        sources.append(Source.REVIEWERS)
    else:
        missing[Source.REVIEWERS] = Missing.NEEDS_OVERLAP
    if not overlap:
        missing[Source.TASTE] = Missing.NEEDS_OVERLAP
    if overlap and repeated:
        sources.append(Source.TASTE)
    if not repeated:
        missing[Source.REST] = Missing.NEEDS_HIDDEN_REPEATS
    if not overlap and not repeated:
        missing[Source.ANSWERS] = Missing.NEEDS_OVERLAP  # one value for each answer: nothing tells it from the rest
        return {}, missing
    found = _henderson(ratings, sources)
    if found is None:
        return {}, dict.fromkeys([Source.ANSWERS, Source.REVIEWERS, Source.TASTE], Missing.NEEDS_OVERLAP) | missing
    if overlap and not repeated:
        found[Source.TASTE] = found.pop(Source.REST)
    return found, missing


def _henderson(ratings: Sequence[Observation], sources: Sequence[Source]) -> dict[Source, float] | None:
    """The components of the sources and the rest; ``None`` where the design leaves them confounded."""
    keys: dict[Source, list[Hashable]] = {
        Source.ANSWERS: [one.answer for one in ratings],
        Source.REVIEWERS: [one.reviewer for one in ratings],
        Source.TASTE: [(one.answer, one.reviewer) for one in ratings],
    }
    each: Indices = np.arange(len(ratings), dtype=np.int64)
    groups = [numbered(keys[source]) for source in sources]
    partitions = [*groups, each, np.zeros(len(ratings), dtype=np.int64)]
    values = np.array([one.value for one in ratings], dtype=np.float64)
    values = values - values.mean()  # variances do not depend on it, rounding does
    table = np.array([_expected(one, [*groups, each]) for one in partitions])
    squares = np.array([_squares(one, values) for one in partitions])
    if np.linalg.matrix_rank(table) < table.shape[1]:
        return None
    solved = np.linalg.solve(table, squares)
    names = [*sources, Source.REST]
    return {name: max(0.0, float(solved[at])) for at, name in enumerate(names)}


def _expected(partition: Indices, factors: Sequence[Indices]) -> list[float]:
    """What the uncorrected sum of squares of a partition is expected to be: a coefficient for each variance component,
    ``sum_l sum_m n_lm^2 / n_l``, and N for the squared mean."""
    size = np.bincount(partition).astype(np.float64)
    found = []
    for factor in factors:
        both = np.bincount(numbered(zip(partition.tolist(), factor.tolist(), strict=True))).astype(np.float64)
        level = _level_of_cells(partition, factor)
        found.append(float((np.square(both) / size[level]).sum()))
    return [*found, float(len(partition))]


def _level_of_cells(partition: Indices, factor: Indices) -> Indices:
    """The level of the partition that each crossing of both belongs to, in the order crossings are numbered."""
    seen = dict.fromkeys(zip(partition.tolist(), factor.tolist(), strict=True))
    return np.array([level for level, _ in seen], dtype=np.int64)


def _squares(partition: Indices, values: Array) -> float:
    size = np.bincount(partition).astype(np.float64)
    return float((np.square(np.bincount(partition, weights=values)) / size).sum())


def _judge(
    ratings: Sequence[Observation], judged: Mapping[Hashable, list[float]], experts: Mapping[Source, float]
) -> tuple[dict[Source, float], dict[Source, Missing]]:
    if not judged:
        return {}, {}
    missing: dict[Source, Missing] = {}
    found: dict[Source, float] = {}
    freedom = sum(len(values) - 1 for values in judged.values())
    if freedom:
        within = sum(sum((v - math.fsum(of) / len(of)) ** 2 for v in of) for of in judged.values())
        found[Source.NOISE] = within / freedom
    else:
        missing[Source.NOISE] = Missing.NEEDS_JUDGE_REPEATS
    both = sorted({one.answer for one in ratings} & set(judged), key=str)
    if len(both) < LEAST_ITEMS or Source.TASTE not in experts:
        missing[Source.JUDGE] = Missing.NEEDS_OVERLAP if len(both) >= LEAST_ITEMS else Missing.NEEDS_RATINGS
        return found, missing
    found[Source.JUDGE] = max(0.0, _judge_error(ratings, judged, both, experts, found.get(Source.NOISE, 0.0)))
    return found, missing


def _judge_error(
    ratings: Sequence[Observation],
    judged: Mapping[Hashable, list[float]],
    both: Sequence[Hashable],
    experts: Mapping[Source, float],
    noise: float,
) -> float:
    """The sample variance over answers of judge minus experts' mean, less what noise and experts are expected to add:
    for a component whose errors have the covariances V, ``(trace V - 1'V1 / n) / (n - 1)``. Reviewers' leniency is
    shared by the answers they rated, so that only their unequal shares add to it."""
    by_answer: dict[Hashable, list[Observation]] = {}
    for one in ratings:
        by_answer.setdefault(one.answer, []).append(one)
    count = len(both)
    gaps = [
        math.fsum(judged[key]) / len(judged[key]) - math.fsum(o.value for o in by_answer[key]) / len(by_answer[key])
        for key in both
    ]
    mean = math.fsum(gaps) / count
    variance = math.fsum((gap - mean) ** 2 for gap in gaps) / (count - 1)
    of_noise = math.fsum(noise / len(judged[key]) for key in both) / count
    own = taste = 0.0
    shared: dict[str, float] = {}
    leniency = 0.0
    for key in both:
        size = len(by_answer[key])
        given = {r: sum(o.reviewer == r for o in by_answer[key]) / size for r in {o.reviewer for o in by_answer[key]}}
        own += 1.0 / size
        taste += sum(share**2 for share in given.values())
        leniency += sum(share**2 for share in given.values())
        for reviewer, share in given.items():
            shared[reviewer] = shared.get(reviewer, 0.0) + share
    across = sum(total**2 for total in shared.values())
    of_experts = experts.get(Source.REST, 0.0) * own / count + experts.get(Source.TASTE, 0.0) * taste / count
    of_reviewers = experts.get(Source.REVIEWERS, 0.0) * (leniency - across / count) / (count - 1)
    return variance - of_noise - of_experts - of_reviewers


def _design(ratings: Sequence[Observation], judged: Mapping[Hashable, list[float]]) -> Design:
    answers = {one.answer for one in ratings}
    return Design(
        answers=len(answers),
        reviewers=len({one.reviewer for one in ratings}),
        ratings=len(ratings) / len(answers) if answers else 0.0,
        judged=len(judged),
        repeats=sum(map(len, judged.values())) / len(judged) if judged else 0.0,
    )
