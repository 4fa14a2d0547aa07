"""Draw of passages for rating, with known probabilities that are larger for influential and uncertain passages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluation.core.errors import DomainError
from review.statistics.agreement.statistic import Array, Indices
from review.statistics.retrieval_truth.pool import Mask, Pool, RetrievalMetric, pool_figures

# This share of the size is spread evenly, so that no passage gets an extreme weight.
UNIFORM_SHARE = 0.3
# Known labels, with a minimum of each class, before relevance is predicted from them.
MIN_LABELS = 20
MIN_LABELS_PER_CLASS = 5
# Limits of the judge's score without evidence on the judge.
GUESS_LIMITS = (0.1, 0.9)
# Variance of a passage whose relevance seems certain.
MIN_GUESS_VARIANCE = 0.03
# Recall depends on the whole pool.
METRIC_WEIGHTS = {RetrievalMetric.PRECISION: 1.0, RetrievalMetric.RECALL: 3.0, RetrievalMetric.NDCG: 1.0}


@dataclass(frozen=True, slots=True)
class PassageDraw:
    """Draw of passages, aligned with the pool.

    ``guess`` is the predicted probability of relevance before rating. ``probability`` is that of being drawn (0 for
    labelled passages). ``sampled`` flags the drawn passages."""

    guess: Array
    probability: Array
    sampled: Mask


def draw_passages(pool: Pool, size: int, seed: int, *, first_relevant: bool = False) -> PassageDraw:
    """Draw ``size`` of the unlabelled passages, or all of them if there are no more.

    ``first_relevant``: passages that decide hit and MRR are drawn with certainty. The same pool and seed give the same
    draw.

    Probabilities are proportional to the passage's contribution to the errors of all figures: the square root of the
    sum, over figures, systems and differences, of ``influence^2 g (1 - g)`` (``g`` the guess), with each figure's
    errors scaled to 1. This minimises the variance of a linear figure (Poisson sampling, as in Yilmaz and Aslam's
    statAP and Horvitz-Thompson pooling, with the variance of the regression model). ``UNIFORM_SHARE`` of the size is
    spread evenly.

    :raises DomainError: ``nothing_to_rate`` if every passage has a label; ``too_few_for_first`` if more passages than
    ``size``
        decide hit and MRR (``needed``)."""
    unlabelled = pool.unlabelled
    if size < 1:
        raise ValueError("a draw takes at least one passage")
    if not len(unlabelled):
        raise DomainError("nothing_to_rate")
    guess = guess_relevance(pool)
    certain = above_first_relevant(pool) if first_relevant else np.zeros(len(guess), dtype=bool)
    if certain.sum() > size:
        raise DomainError("too_few_for_first", needed=int(certain.sum()), size=size)
    mass = _error_mass(pool, guess)[unlabelled]
    probability = np.zeros(len(guess))
    probability[unlabelled] = draw_probabilities(mass, min(size, len(unlabelled)), certain[unlabelled])
    sampled = np.zeros(len(guess), dtype=bool)
    sampled[unlabelled[_systematic(probability[unlabelled], np.random.default_rng(seed))]] = True
    return PassageDraw(guess, probability, sampled)


def above_first_relevant(pool: Pool) -> Mask:
    """Flags of the unlabelled passages in any system's first k that rank above its first known relevant passage."""
    needed = np.zeros(len(pool.question), dtype=bool)
    for ranks in pool.ranks:
        in_top_k = (ranks > 0) & (ranks <= pool.k)
        first = np.full(pool.questions, pool.k + 1)
        hits = np.flatnonzero(in_top_k & (pool.known > 0.5))
        np.minimum.at(first, pool.question[hits], ranks[hits])
        needed |= in_top_k & np.isnan(pool.known) & (ranks < first[pool.question])
    return needed


def guess_relevance(pool: Pool) -> Array:
    """Predicted probability of relevance of each passage.

    A logistic regression (ridge 1 on standardised terms) of the known labels on the judge's score, its square, the mean
    rank over systems, and the product of score and rank. With fewer than 20 labels, or 5 of a class, the judge's score
    limited to 0.1 to 0.9, and 0.5 without a score. A wrong guess widens intervals, but figures stay unbiased."""
    known = ~np.isnan(pool.known)
    relevant = pool.known[known] > 0.5
    if known.sum() < MIN_LABELS or min(relevant.sum(), (~relevant).sum()) < MIN_LABELS_PER_CLASS:
        return np.clip(np.where(np.isnan(pool.judge), 0.5, pool.judge), *GUESS_LIMITS)
    unjudged = np.isnan(pool.judge)
    judge_score = np.where(unjudged, np.nanmean(pool.judge) if not unjudged.all() else 0.0, pool.judge)
    missing_rank = int(pool.ranks.max()) + 1
    mean_rank_score = -np.log(np.where(pool.ranks > 0, pool.ranks, missing_rank)).mean(axis=0)
    terms = np.column_stack([judge_score, judge_score**2, unjudged, mean_rank_score, judge_score * mean_rank_score])
    spread = terms.std(axis=0)
    terms = (terms - terms.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    design_matrix = np.column_stack([np.ones(len(terms)), terms])
    return _logistic(design_matrix, known, relevant.astype(np.float64))


def _logistic(design: Array, known: Array, label: Array) -> Array:
    """Fit by Newton's method, halving steps that increase the loss. The penalty makes the loss strictly convex."""
    labelled_rows, weights = design[known], np.zeros(design.shape[1])
    penalty = np.diag([1e-3, *[1.0] * (design.shape[1] - 1)])

    def loss(point: Array) -> float:
        logit = labelled_rows @ point
        return float(np.logaddexp(0.0, logit).sum() - label @ logit + point @ penalty @ point / 2.0)

    for _ in range(50):
        relevance = 1.0 / (1.0 + np.exp(-np.clip(labelled_rows @ weights, -30, 30)))
        slope = labelled_rows.T @ (relevance - label) + penalty @ weights
        step = np.linalg.solve(
            (labelled_rows * (relevance * (1 - relevance))[:, None]).T @ labelled_rows + penalty, slope
        )
        scale = 1.0
        while loss(weights - scale * step) > loss(weights) and scale > 1e-6:
            scale /= 2.0
        weights = weights - scale * step
        if float(np.abs(scale * step).max()) < 1e-9:
            break
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(design @ weights, -30, 30))))


def _error_mass(pool: Pool, guess: Array) -> Array:
    known = np.where(np.isnan(pool.known), guess, pool.known)
    everywhere = np.ones(pool.questions, dtype=bool)
    influence = pool_figures(pool, known, np.ones(pool.questions), everywhere).influence
    guess_variance = np.where(np.isnan(pool.known), np.maximum(guess * (1.0 - guess), MIN_GUESS_VARIANCE), 0.0)
    error = influence**2 * guess_variance
    total = error.sum(axis=2, keepdims=True)
    share = np.divide(error, total, out=np.zeros_like(error), where=total > 0)
    by_metric = np.array([METRIC_WEIGHTS[metric] for metric in RetrievalMetric])
    return np.asarray(np.sqrt((share.sum(axis=1) * by_metric[:, None]).sum(axis=0)))


def draw_probabilities(mass: Array, size: int, is_certain: Mask) -> Array:
    """Probabilities that sum to ``size``, proportional to ``mass`` with ``UNIFORM_SHARE`` spread evenly.

    They are 1 where ``is_certain``. Values above 1 are cut to 1, and the others are raised."""
    total_mass = float(mass.sum())
    even = np.full(len(mass), 1.0 / len(mass))
    blend = (1.0 - UNIFORM_SHARE) * (mass / total_mass if total_mass > 0 else even) + UNIFORM_SHARE * even
    certain = is_certain.copy()
    while True:
        probability = np.ones(len(mass))
        if certain.all():
            return probability
        uncertain = ~certain
        probability[uncertain] = (size - certain.sum()) * blend[uncertain] / blend[uncertain].sum()
        exceeding = uncertain & (probability > 1.0)
        if not exceeding.any():
            return probability
        certain = certain | exceeding


def _systematic(probability: Array, random: np.random.Generator) -> Indices:
    """Draw a sample of fixed size with exactly these probabilities.

    Systematic sampling from a list in random order (W. G. Madow, 1949, Annals of Mathematical Statistics 20)."""
    order = random.permutation(len(probability))
    cumulative = np.floor(np.cumsum(probability[order]) + random.random() + 1e-9)
    return np.asarray(order[np.diff(cumulative, prepend=0.0) > 0])
