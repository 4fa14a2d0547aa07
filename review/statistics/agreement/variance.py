"""Variance components of ratings and of the judge's scores.

Ratings are modelled as ``y = mean + answer + reviewer + interaction + residual``, all random and independent. *Answer*
is the true difference between answers, *reviewer* the leniency of a person, *interaction* a person's deviation on one
answer, and *residual* the change between two ratings by the same person (hidden repeats).

Scores of a judge are ``answer + judge + noise`` about its own mean. *Judge* is its repeatable error on an answer,
*noise* the variation between its repeats."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from review.statistics.agreement.statistic import Array, Indices, factorize

MIN_ANSWERS = 2


class VarianceSource(StrEnum):
    """Source of variance."""

    ANSWERS = "answers"
    REVIEWERS = "reviewers"
    # Interaction of reviewer and answer; it includes the residual if nobody rated an answer twice.
    INTERACTION = "taste"
    RESIDUAL = "rest"
    JUDGE = "judge"
    NOISE = "noise"


class DesignGap(StrEnum):
    """Data that a design lacks to estimate a component."""

    # Answers rated by two people.
    NEEDS_OVERLAP = "needs_overlap"
    NEEDS_TWO_REVIEWERS = "needs_two_reviewers"
    NEEDS_HIDDEN_REPEATS = "needs_hidden_repeats"
    NEEDS_JUDGE_REPEATS = "needs_judge_repeats"
    NEEDS_RATINGS = "needs_ratings"


@dataclass(frozen=True, slots=True)
class Observation:
    """Value from one reviewer for one answer; several values for the same two are repeats."""

    answer: Hashable
    reviewer: str
    value: float


@dataclass(frozen=True, slots=True)
class RatingDesign:
    """Size of the data behind the estimates.

    ``answers`` are rated, ``judged`` are scored by the judge. ``ratings`` and ``repeats`` of the judge are means per
    answer."""

    answers: int
    reviewers: int
    ratings: float
    judged: int
    repeats: float


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """Variances by source, in squared units of the scale.

    Negative estimates are set to 0: the source shows no variance. ``missing`` lists sources that cannot be estimated.
    """

    variances: Mapping[VarianceSource, float]
    missing: Mapping[VarianceSource, DesignGap]
    design: RatingDesign


def variance_split(
    ratings: Sequence[Observation], judge: Mapping[Hashable, Sequence[float]] | None = None
) -> VarianceSplit:
    """Estimate the variance components of ratings with gaps and, from the judge's repeats by answer, of its scores.

    Experts: analysis of variance with unequal numbers (C. R. Henderson, 1953, Biometrics 9, method 1). Uncorrected sums
    of squares by answer, by reviewer, by both, in all, and of the mean are set equal to their expectations.

    Judge: noise is the mean square within answers. The judge's own error is the variance over answers of judge minus
    experts' mean, less the contributions of noise and experts."""
    judged = {key: list(values) for key, values in (judge or {}).items() if len(values)}
    variances, missing = _expert_components(ratings)
    judge_variances, judge_missing = _judge_components(ratings, judged, variances)
    return VarianceSplit(variances | judge_variances, missing | judge_missing, _design(ratings, judged))


def _expert_components(
    ratings: Sequence[Observation],
) -> tuple[dict[VarianceSource, float], dict[VarianceSource, DesignGap]]:
    rated_pairs = {(rating.answer, rating.reviewer) for rating in ratings}
    answers, reviewers = {a for a, _ in rated_pairs}, {r for _, r in rated_pairs}
    if len(answers) < MIN_ANSWERS:
        return {}, dict.fromkeys(
            [VarianceSource.ANSWERS, VarianceSource.REVIEWERS, VarianceSource.INTERACTION], DesignGap.NEEDS_RATINGS
        )
    has_overlap, has_repeats = len(rated_pairs) > len(answers), len(ratings) > len(rated_pairs)
    sources, missing = [VarianceSource.ANSWERS], {}
    if len(reviewers) < 2:
        missing[VarianceSource.REVIEWERS] = DesignGap.NEEDS_TWO_REVIEWERS
    elif has_overlap:
        sources.append(VarianceSource.REVIEWERS)
    else:
        missing[VarianceSource.REVIEWERS] = DesignGap.NEEDS_OVERLAP
    if not has_overlap:
        missing[VarianceSource.INTERACTION] = DesignGap.NEEDS_OVERLAP
    if has_overlap and has_repeats:
        sources.append(VarianceSource.INTERACTION)
    if not has_repeats:
        missing[VarianceSource.RESIDUAL] = DesignGap.NEEDS_HIDDEN_REPEATS
    if not has_overlap and not has_repeats:
        # With one value for each answer, differences between answers cannot be told from the residual.
        missing[VarianceSource.ANSWERS] = DesignGap.NEEDS_OVERLAP
        return {}, missing
    components = _henderson_components(ratings, sources)
    if components is None:
        return {}, dict.fromkeys(
            [VarianceSource.ANSWERS, VarianceSource.REVIEWERS, VarianceSource.INTERACTION], DesignGap.NEEDS_OVERLAP
        ) | missing
    if has_overlap and not has_repeats:
        components[VarianceSource.INTERACTION] = components.pop(VarianceSource.RESIDUAL)
    return components, missing


def _henderson_components(
    ratings: Sequence[Observation], sources: Sequence[VarianceSource]
) -> dict[VarianceSource, float] | None:
    """Components of the sources and the residual; ``None`` if the design confounds them."""
    keys: dict[VarianceSource, list[Hashable]] = {
        VarianceSource.ANSWERS: [rating.answer for rating in ratings],
        VarianceSource.REVIEWERS: [rating.reviewer for rating in ratings],
        VarianceSource.INTERACTION: [(rating.answer, rating.reviewer) for rating in ratings],
    }
    each_rating: Indices = np.arange(len(ratings), dtype=np.int64)
    groups = [factorize(keys[source]) for source in sources]
    partitions = [*groups, each_rating, np.zeros(len(ratings), dtype=np.int64)]
    values = np.array([rating.value for rating in ratings], dtype=np.float64)
    # Centering changes no variance but reduces rounding errors.
    values = values - values.mean()
    table = np.array([_expected_coefficients(partition, [*groups, each_rating]) for partition in partitions])
    squares = np.array([_sum_of_squares(partition, values) for partition in partitions])
    if np.linalg.matrix_rank(table) < table.shape[1]:
        return None
    components = np.linalg.solve(table, squares)
    names = [*sources, VarianceSource.RESIDUAL]
    return {name: max(0.0, float(components[position])) for position, name in enumerate(names)}


def _expected_coefficients(partition: Indices, factors: Sequence[Indices]) -> list[float]:
    """Coefficients of the expected uncorrected sum of squares of a partition.

    ``sum_l sum_m n_lm^2 / n_l`` for each variance component, and N for the squared mean."""
    size = np.bincount(partition).astype(np.float64)
    coefficients = []
    for factor in factors:
        crossing_sizes = np.bincount(factorize(zip(partition.tolist(), factor.tolist(), strict=True))).astype(
            np.float64
        )
        level_of_crossing = _level_of_cells(partition, factor)
        coefficients.append(float((np.square(crossing_sizes) / size[level_of_crossing]).sum()))
    return [*coefficients, float(len(partition))]


def _level_of_cells(partition: Indices, factor: Indices) -> Indices:
    """Level of the partition of each crossing, in the order in which crossings are numbered."""
    crossings = dict.fromkeys(zip(partition.tolist(), factor.tolist(), strict=True))
    return np.array([level for level, _ in crossings], dtype=np.int64)


def _sum_of_squares(partition: Indices, values: Array) -> float:
    size = np.bincount(partition).astype(np.float64)
    return float((np.square(np.bincount(partition, weights=values)) / size).sum())


def _judge_components(
    ratings: Sequence[Observation], judged: Mapping[Hashable, list[float]], experts: Mapping[VarianceSource, float]
) -> tuple[dict[VarianceSource, float], dict[VarianceSource, DesignGap]]:
    if not judged:
        return {}, {}
    missing: dict[VarianceSource, DesignGap] = {}
    components: dict[VarianceSource, float] = {}
    freedom = sum(len(values) - 1 for values in judged.values())
    if freedom:
        within = sum(
            sum((score - math.fsum(scores) / len(scores)) ** 2 for score in scores) for scores in judged.values()
        )
        components[VarianceSource.NOISE] = within / freedom
    else:
        missing[VarianceSource.NOISE] = DesignGap.NEEDS_JUDGE_REPEATS
    shared_answers = sorted({rating.answer for rating in ratings} & set(judged), key=str)
    if len(shared_answers) < MIN_ANSWERS or VarianceSource.INTERACTION not in experts:
        missing[VarianceSource.JUDGE] = (
            DesignGap.NEEDS_OVERLAP if len(shared_answers) >= MIN_ANSWERS else DesignGap.NEEDS_RATINGS
        )
        return components, missing
    components[VarianceSource.JUDGE] = max(
        0.0, _judge_error(ratings, judged, shared_answers, experts, components.get(VarianceSource.NOISE, 0.0))
    )
    return components, missing


def _judge_error(
    ratings: Sequence[Observation],
    judged: Mapping[Hashable, list[float]],
    shared_answers: Sequence[Hashable],
    experts: Mapping[VarianceSource, float],
    noise: float,
) -> float:
    """Variance of the judge's own error.

    It is the sample variance over answers of judge minus experts' mean, less the expected contributions of noise and
    experts. A component whose errors have the covariances V contributes ``(trace V - 1'V1 / n) / (n - 1)``. A
    reviewer's leniency is shared by the answers they rated, so only unequal shares contribute."""
    by_answer: dict[Hashable, list[Observation]] = {}
    for rating in ratings:
        by_answer.setdefault(rating.answer, []).append(rating)
    count = len(shared_answers)
    differences = [
        math.fsum(judged[key]) / len(judged[key])
        - math.fsum(rating_of_answer.value for rating_of_answer in by_answer[key]) / len(by_answer[key])
        for key in shared_answers
    ]
    mean = math.fsum(differences) / count
    variance = math.fsum((difference - mean) ** 2 for difference in differences) / (count - 1)
    noise_variance = math.fsum(noise / len(judged[key]) for key in shared_answers) / count
    residual_factor = interaction_factor = 0.0
    share_by_reviewer: dict[str, float] = {}
    leniency_factor = 0.0
    for key in shared_answers:
        size = len(by_answer[key])
        reviewer_shares = {
            reviewer_name: sum(rating_of_answer.reviewer == reviewer_name for rating_of_answer in by_answer[key]) / size
            for reviewer_name in {rating_of_answer.reviewer for rating_of_answer in by_answer[key]}
        }
        residual_factor += 1.0 / size
        interaction_factor += sum(share**2 for share in reviewer_shares.values())
        leniency_factor += sum(share**2 for share in reviewer_shares.values())
        for reviewer, share in reviewer_shares.items():
            share_by_reviewer[reviewer] = share_by_reviewer.get(reviewer, 0.0) + share
    shared_leniency = sum(total**2 for total in share_by_reviewer.values())
    expert_variance = (
        experts.get(VarianceSource.RESIDUAL, 0.0) * residual_factor / count
        + experts.get(VarianceSource.INTERACTION, 0.0) * interaction_factor / count
    )
    reviewer_variance = (
        experts.get(VarianceSource.REVIEWERS, 0.0) * (leniency_factor - shared_leniency / count) / (count - 1)
    )
    return variance - noise_variance - expert_variance - reviewer_variance


def _design(ratings: Sequence[Observation], judged: Mapping[Hashable, list[float]]) -> RatingDesign:
    answers = {rating.answer for rating in ratings}
    return RatingDesign(
        answers=len(answers),
        reviewers=len({rating.reviewer for rating in ratings}),
        ratings=len(ratings) / len(answers) if answers else 0.0,
        judged=len(judged),
        repeats=sum(map(len, judged.values())) / len(judged) if judged else 0.0,
    )
