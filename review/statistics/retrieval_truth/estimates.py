"""Estimates of the retrieval metrics for a fully rated pool, with intervals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array
from review.statistics.correction.outcome import (
    Deviation,
    Method,
    Target,
    WithheldReason,
    clustered_variance,
    group_freedom,
)
from review.statistics.retrieval_truth.draw import MIN_GUESS_VARIANCE, PassageDraw
from review.statistics.retrieval_truth.pool import (
    Mask,
    Pool,
    PoolFigures,
    RatioFigure,
    RetrievalMetric,
    ideal_gain,
    pool_figures,
    ratio_figures,
    system_pairs,
    with_differences,
)
from review.statistics.student_t import t_quantile

MIN_RATED = 20
MAX_UNJUDGEABLE_SHARE = 0.1
# This share of the variance expected from the guess is added to the variance that the ratings show.
UNSEEN_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class CorrectedFigure:
    """Estimated metric of a system, or of ``system`` minus ``other`` (``None`` for a single system), by number.

    The interval is about this pool of these questions. Without a value, ``withheld`` holds the reason."""

    metric: RetrievalMetric
    system: int
    other: int | None
    value: float | None
    low: float | None
    high: float | None
    method: Method | None
    withheld: WithheldReason | None = None

    @property
    def target(self) -> Target:
        """Target of the interval."""
        return Target.THIS_RUN


@dataclass(frozen=True, slots=True)
class PoolEstimate:
    """Estimated figures and the sample behind them.

    The counts are passages without a label before the draw, drawn and rated, and questions. ``with_relevant`` counts
    the questions with a known relevant passage, which recall and nDCG are about."""

    figures: Sequence[CorrectedFigure]
    unlabelled: int
    drawn: int
    rated: int
    questions: int
    with_relevant: int


def estimate(
    pool: Pool, drawn: PassageDraw, rated: Array, confidence: float = 0.95, *, unjudgeable: int = 0
) -> PoolEstimate:
    """Estimate the figures from ratings (relevance from 0 to 1 aligned with the pool, NaN if unrated).

    A difference estimator: every unlabelled passage enters with its guess ``g``, and each rated one adds ``(y - g) /
    p`` (D. G. Horvitz, D. J. Thompson, 1952, JASA 47; C. E. Särndal, 1980, Biometrika 67). ``p`` is its stored
    probability times rated / drawn, because passages are served in random order.

    Recall and nDCG are ratios of such sums in each question, linearised for the variance. The variance is Hájek's for
    unequal probabilities and a fixed size, plus 3/4 of the variance expected from the guess: a sample without a
    surprise says little about the size of one. Student's t has one degree of freedom less than ratings of probability
    below 1. Intervals of recall and nDCG reach further if few passages are relevant (:func:`_intervals`).

    Withheld with fewer than 20 ratings, unless all passages are rated, and if ``unjudgeable`` (passages that experts
    could not judge) exceeds a tenth of those reached."""
    estimates = _estimate_figures(pool, drawn, rated, unjudgeable)
    if estimates.withheld:
        reason = estimates.withheld
        corrected = [
            CorrectedFigure(metric, *cell, None, None, None, None, reason)
            for metric in RetrievalMetric
            for cell in _system_cells(pool)
        ]
    else:
        intervals = _intervals(pool, estimates, t_quantile(0.5 + confidence / 2.0, estimates.freedom))
        corrected = _corrected_figures(pool, intervals, estimates.method, estimates.counted)
    drawn_count, rated_count = int((np.isnan(pool.known) & drawn.sampled).sum()), int(estimates.is_rated.sum())
    return PoolEstimate(
        corrected, len(pool.unlabelled), drawn_count, rated_count, pool.questions, int(estimates.counted.sum())
    )


# A value and its deviation by group; the deviation is None if nothing varies.
FigureDeviation = tuple[float, Deviation | None]


def estimate_for_similar_questions(
    pool: Pool, drawn: PassageDraw, rated: Array, groups: Sequence[Hashable], *, unjudgeable: int = 0
) -> dict[tuple[RetrievalMetric, int, int | None], FigureDeviation | WithheldReason]:
    """Estimate each figure with its deviation for questions like these; ``groups`` has the group of each question.

    Questions are the clusters of a first stage. The variation between their estimates, by group, contains their own
    variation and that of the draw (M. H. Hansen, W. N. Hurwitz, W. G. Madow, 1953, Sample Survey Methods and Theory;
    the dependence of draws of fixed size between questions only widens it). 3/4 of the variance expected from the guess
    is added, as in :func:`estimate`. Student's t by the groups."""
    estimates = _estimate_figures(pool, drawn, rated, unjudgeable)
    deviations: dict[tuple[RetrievalMetric, int, int | None], FigureDeviation | WithheldReason] = {}
    group_numbers = {group_name: group_number for group_number, group_name in enumerate(dict.fromkeys(groups))}
    group, all_questions = (
        np.array([group_numbers[question_group] for question_group in groups], dtype=np.intp),
        np.ones(pool.questions, dtype=bool),
    )
    for row, metric in enumerate(RetrievalMetric):
        counted = all_questions if metric is RetrievalMetric.PRECISION else estimates.counted
        for column, cell in enumerate(_system_cells(pool)):
            if estimates.withheld or not counted.any():
                deviations[metric, *cell] = estimates.withheld or WithheldReason.NO_VALUES
                continue
            shares = estimates.figures.deviation[row, column]
            variance, sizes = clustered_variance(shares[counted], group[counted])
            error = float(np.sqrt(variance + UNSEEN_SHARE * estimates.expected_variance[row, column]))
            sums = np.bincount(group, weights=shares)
            sum_by_group = {
                group_name: float(sums[group_number])
                for group_name, group_number in group_numbers.items()
                if counted[group == group_number].any()
            }
            varies = len(sizes) > 1 and error > ZERO_TOLERANCE
            value = float(estimates.figures.value[row, column])
            deviations[metric, *cell] = (
                value,
                Deviation(value, error, group_freedom(sizes), sum_by_group) if varies else None,
            )
    return deviations


ZERO_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class _UnratedPool:
    """State of a pool with unrated passages.

    ``relevance`` is the estimate, with its ``total`` by question. ``known`` is 0 for unknown passages, ``unrated``
    flags the passages still to rate, and ``variance`` is that of each passage's estimate."""

    relevance: Array
    total: Array
    known: Array
    unrated: Mask
    variance: Array


@dataclass(frozen=True, slots=True)
class _FigureEstimates:
    """Figures by metric and cell, with the variance shown by the ratings and the one expected from the guess.

    ``unrated`` is ``None`` if nothing is estimated."""

    figures: PoolFigures
    rating_variance: Array
    expected_variance: Array
    freedom: int
    is_rated: Mask
    counted: Mask
    method: Method
    withheld: WithheldReason | None = None
    unrated: _UnratedPool | None = None


def _estimate_figures(pool: Pool, drawn: PassageDraw, rated: Array, unjudgeable: int) -> _FigureEstimates:
    unlabelled = np.isnan(pool.known)
    is_rated = unlabelled & drawn.sampled & ~np.isnan(rated)
    complete = not (unlabelled & np.isnan(rated)).any()
    if complete:
        is_rated = unlabelled
    known = np.where(is_rated, np.where(np.isnan(rated), 0.0, rated), np.where(unlabelled, 0.0, pool.known))
    relevant = pool.sums(known)
    counted, least = np.asarray(relevant > 0), np.maximum(relevant, 1.0)
    rated_count = int(is_rated.sum())
    reason = WithheldReason.NON_RESPONSE if unjudgeable > MAX_UNJUDGEABLE_SHARE * (rated_count + unjudgeable) else None
    if rated_count < MIN_RATED and not complete:
        reason = WithheldReason.TOO_FEW_LABELS
    if complete or reason:
        exact = pool_figures(pool, known, np.where(counted, relevant, 1.0), counted)
        zeros = np.zeros_like(exact.value)
        return _FigureEstimates(exact, zeros, zeros, 1, is_rated, counted, Method.CENSUS, reason)
    response_rate = rated_count / int((unlabelled & drawn.sampled).sum())
    inclusion = np.where(is_rated, drawn.probability * response_rate, 1.0)
    surprise = np.where(is_rated, (rated - drawn.guess) / inclusion, 0.0)
    surprise = np.where(np.isnan(surprise), 0.0, surprise)
    relevance = np.where(unlabelled, drawn.guess + surprise, pool.known)
    estimated = pool_figures(pool, relevance, least, counted)
    guess_based = pool_figures(pool, np.where(is_rated | ~unlabelled, known, drawn.guess), least, counted)
    sampling_chance = np.where(unlabelled, drawn.probability * response_rate, 1.0)
    guess_variance = np.where(unlabelled, np.maximum(drawn.guess * (1.0 - drawn.guess), MIN_GUESS_VARIANCE), 0.0)
    unseen_variance = guess_variance * (1.0 - sampling_chance) / sampling_chance
    expected_variance = (guess_based.influence**2 * unseen_variance).sum(axis=2)
    rating_variance = _hajek_variance(
        estimated.influence[:, :, is_rated] * surprise[is_rated], 1.0 - inclusion[is_rated]
    )
    freedom = max(1, int((inclusion < 1.0).sum()) - 1)
    variance = (1.0 - inclusion) * surprise**2 + UNSEEN_SHARE * unseen_variance
    unrated_pool = _UnratedPool(
        relevance, np.maximum(pool.sums(relevance), least), known, unlabelled & ~is_rated, variance
    )
    return _FigureEstimates(
        estimated,
        rating_variance,
        expected_variance,
        freedom,
        is_rated,
        counted,
        Method.REGRESSION,
        unrated=unrated_pool,
    )


def _intervals(pool: Pool, estimates: _FigureEstimates, quantile: float) -> tuple[Array, Array, Array]:
    """Value, low and high by metric and cell.

    Few relevant passages make a ratio skewed: one that was drawn by chance counts as several, which lowers recall and
    the variance around it. The interval of recall and nDCG therefore also holds, in each question, the ratios that a t
    test of ``gain - ratio x perfect`` does not reject (E. C. Fieller, 1954, Journal of the Royal Statistical Society B
    16). Over questions the distances are added as squares (G. Y. Zou, A. Donner, 2008, Statistics in Medicine 27).
    Every end stays within the values that the unrated passages allow."""
    half = quantile * np.sqrt(estimates.rating_variance + UNSEEN_SHARE * estimates.expected_variance)
    value = estimates.figures.value.copy()
    low, high = value - half, value + half
    if estimates.unrated is None or not estimates.counted.any():
        return value, low, high
    question_count, counted = int(estimates.counted.sum()), estimates.counted
    for row, (metric, ratio) in enumerate(ratio_figures(pool, estimates.unrated.total).items(), start=1):
        least, most = (bound[:, counted] for bound in _possible_ratios(pool, estimates.unrated, metric, ratio.gain))
        middle, below, above = (
            end[:, counted] for end in _interval_by_question(pool, estimates.unrated, ratio, quantile)
        )
        below, above = middle - np.clip(below, least, most), np.clip(above, least, most) - middle
        half_widths = [
            np.sqrt(np.square(np.maximum(distance, 0.0)).sum(axis=1)) / question_count for distance in (below, above)
        ]
        ends = (
            value[row],
            np.minimum(low[row], value[row] - half_widths[0]),
            np.maximum(high[row], value[row] + half_widths[1]),
        )
        value[row], low[row], high[row] = (np.clip(end, least.mean(axis=1), most.mean(axis=1)) for end in ends)
    return value, low, high


def _interval_by_question(
    pool: Pool, unrated_pool: _UnratedPool, ratio: RatioFigure, quantile: float
) -> tuple[Array, Array, Array]:
    """Value, low and high of a ratio by cell and question; infinite ends if the test rejects no ratio."""
    gain, variance, perfect = with_differences(pool, ratio.gain), unrated_pool.variance, ratio.perfect
    sums = pool.sums(gain * unrated_pool.relevance)
    gain_variance, covariance = pool.sums(gain**2 * variance), ratio.slope * pool.sums(gain * variance)
    quadratic = perfect**2 - quantile**2 * ratio.slope**2 * pool.sums(variance)
    linear = sums * perfect - quantile**2 * covariance
    root = np.sqrt(np.maximum(linear**2 - quadratic * (sums**2 - quantile**2 * gain_variance), 0.0))
    bounded = quadratic > ZERO_TOLERANCE * perfect**2
    divisor = np.where(bounded, quadratic, 1.0)
    low = np.where(bounded, (linear - root) / divisor, -np.inf)
    high = np.where(bounded, (linear + root) / divisor, np.inf)
    return sums / perfect, low, high


def _possible_ratios(
    pool: Pool, unrated_pool: _UnratedPool, metric: RetrievalMetric, gain: Array
) -> tuple[Array, Array]:
    """Bounds of a ratio after rating all passages, by cell and question."""
    count, known_gain = pool.sums(unrated_pool.known), pool.sums(gain * unrated_pool.known)
    possible_gain, unrated_count = (
        pool.sums(gain * unrated_pool.unrated),
        pool.sums(unrated_pool.unrated.astype(np.float64)),
    )
    most_relevant = np.maximum(count + unrated_count, 1.0)
    if metric is RetrievalMetric.RECALL:
        least, most = known_gain / most_relevant, (known_gain + possible_gain) / np.maximum(count + possible_gain, 1.0)
    else:
        least_relevant = np.maximum(count, 1.0)
        least, most = (
            known_gain / ideal_gain(most_relevant, pool.k)[0],
            (known_gain + possible_gain) / ideal_gain(least_relevant, pool.k)[0],
        )
        most = np.minimum(most, 1.0)
    first, second = (np.array([pair[at] for pair in system_pairs(pool.systems)], dtype=int) for at in (0, 1))
    ends = ((least, least[first] - most[second]), (most, most[first] - least[second]))
    return np.concatenate(ends[0]), np.concatenate(ends[1])


def _hajek_variance(parts: Array, sampling_weight: Array) -> Array:
    """Hájek's variance ``n / (n - 1) sum (1 - p) (z - a)^2`` with ``a`` the mean of ``z`` weighted by ``1 - p``.

    Source: J. Hájek, 1964, Annals of Mathematical Statistics 35."""
    weight = float(sampling_weight.sum())
    if weight <= 0:
        return np.zeros(parts.shape[:-1])
    weighted_mean = (parts * sampling_weight).sum(axis=-1, keepdims=True) / weight
    sampled_count = max(2, int((sampling_weight > 0).sum()))
    return np.asarray(
        sampled_count / (sampled_count - 1) * (sampling_weight * (parts - weighted_mean) ** 2).sum(axis=-1)
    )


def _system_cells(pool: Pool) -> list[tuple[int, int | None]]:
    return [*((system, None) for system in range(pool.systems)), *system_pairs(pool.systems)]


def _corrected_figures(
    pool: Pool, intervals: tuple[Array, Array, Array], method: Method, counted: Mask
) -> list[CorrectedFigure]:
    corrected = []
    for row, metric in enumerate(RetrievalMetric):
        for column, (system, other) in enumerate(_system_cells(pool)):
            if metric is not RetrievalMetric.PRECISION and not counted.any():
                corrected.append(
                    CorrectedFigure(metric, system, other, None, None, None, None, WithheldReason.NO_VALUES)
                )
                continue
            least = 0.0 if other is None else -1.0
            value, low, high = (min(max(float(end[row, column]), least), 1.0) for end in intervals)
            corrected.append(CorrectedFigure(metric, system, other, value, low, high, method))
    return corrected


@dataclass(frozen=True, slots=True)
class FirstRelevant:
    """Hit and reciprocal rank of a system, as means over the questions.

    They are known exactly, or ``undecided`` questions have an unlabelled passage above the first known relevant one."""

    system: int
    hit: float | None
    reciprocal_rank: float | None
    undecided: int


def first_relevant_figures(pool: Pool, rated: Array) -> list[FirstRelevant]:
    """Hit@k and MRR, means over all questions; half relevant counts as not relevant.

    They are no sums over passages and have no estimate. They are given only if no question has an unrated passage above
    its first relevant one."""
    relevance = np.where(np.isnan(pool.known), rated, pool.known)
    figures_by_system = []
    for system, ranks in enumerate(pool.ranks):
        in_top_k = (ranks > 0) & (ranks <= pool.k)
        first, first_unknown = (np.full(pool.questions, pool.k + 1) for _ in range(2))
        for first_rank, is_candidate in ((first, relevance > 0.5), (first_unknown, np.isnan(relevance))):
            positions = np.flatnonzero(in_top_k & is_candidate)
            np.minimum.at(first_rank, pool.question[positions], ranks[positions])
        undecided = int((first_unknown < first).sum())
        if undecided:
            figures_by_system.append(FirstRelevant(system, None, None, undecided))
        else:
            hit = first <= pool.k
            figures_by_system.append(
                FirstRelevant(system, float(hit.mean()), float(np.where(hit, 1.0 / first, 0.0).mean()), 0)
            )
    return figures_by_system
