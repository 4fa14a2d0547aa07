"""Which passages experts rate: each with a known probability, larger where a figure depends on it and nobody can
guess it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluation.core.errors import Refused
from review.statistics.agreement.statistic import Array, Indices
from review.statistics.retrieval_truth.pool import Mask, Metric, Pool, figures

UNIFORM_SHARE = 0.3  # of the size is spread evenly, so that no passage's weight explodes
LEAST_LABELS = 20  # of known labels, and 5 on either side, before a guess is learnt from them
LEAST_ON_A_SIDE = 5
CAUTION = (0.1, 0.9)  # a judge's word where nothing is known of the judge
LEAST_DOUBT = 0.03  # the variance of a passage that the guess is sure of
IMPORTANCE = {Metric.PRECISION: 1.0, Metric.RECALL: 3.0, Metric.NDCG: 1.0}  # recall depends on the whole pool


@dataclass(frozen=True, slots=True)
class PassageDraw:
    """Aligned with the pool: ``guess`` is the probability of relevance that was guessed before anybody rated,
    ``probability`` that of being drawn (0 for labelled passages: they need no rating), ``sampled`` who was."""

    guess: Array
    probability: Array
    sampled: Mask


def draw_passages(pool: Pool, size: int, seed: int, *, first_relevant: bool = False) -> PassageDraw:
    """Draw ``size`` of the unlabelled passages, all where there are no more. ``first_relevant``: those that hit and MRR
    depend on are drawn with certainty. The same pool and seed give the same draw.

    Probabilities are in proportion to the size of the passage's part in the errors of all figures: the square root of
    the sum over figures and systems and differences of ``influence^2 g (1 - g)``, each figure's errors scaled to one
    (``g`` the guess), for which a linear figure's variance is least (Poisson sampling, as Yilmaz and Aslam's statAP and
    Horvitz-Thompson pooling have it, with the regression model's variance). ``UNIFORM_SHARE`` of the size is spread
    evenly.

    :raises Refused: ``nothing_to_rate`` where every passage has a label; ``too_few_for_first`` where those that hit and
        MRR depend on are more than ``size`` (``needed``).
    """
    open_ones = pool.unlabelled
    if size < 1:
        raise ValueError("a draw takes at least one passage")
    if not len(open_ones):
        raise Refused("nothing_to_rate")
    guess = guess_relevance(pool)
    sure = needed_for_first(pool) if first_relevant else np.zeros(len(guess), dtype=bool)
    if sure.sum() > size:
        raise Refused("too_few_for_first", needed=int(sure.sum()), size=size)
    mass = _mass(pool, guess)[open_ones]
    probability = np.zeros(len(guess))
    probability[open_ones] = proportional(mass, min(size, len(open_ones)), sure[open_ones])
    sampled = np.zeros(len(guess), dtype=bool)
    sampled[open_ones[_systematic(probability[open_ones], np.random.default_rng(seed))]] = True
    return PassageDraw(guess, probability, sampled)


def needed_for_first(pool: Pool) -> Mask:
    """The unlabelled passages that stand, in some system's first k, above the first one known to be relevant."""
    found = np.zeros(len(pool.question), dtype=bool)
    for ranks in pool.ranks:
        within = (ranks > 0) & (ranks <= pool.k)
        first = np.full(pool.questions, pool.k + 1)
        hits = np.flatnonzero(within & (pool.known > 0.5))
        np.minimum.at(first, pool.question[hits], ranks[hits])
        found |= within & np.isnan(pool.known) & (ranks < first[pool.question])
    return found


def guess_relevance(pool: Pool) -> Array:
    """The probability of relevance of each passage: a logistic regression (ridge 1 on standardised terms) of the known
    labels on the judge's word, its square, how high the systems rank the passage, and the product of both. With fewer
    than 20 labels, or 5 on a side, the judge's word kept within 0.1 and 0.9, and a half without one. Where it is wrong,
    intervals get wider; figures stay unbiased."""
    known = ~np.isnan(pool.known)
    relevant = pool.known[known] > 0.5
    if known.sum() < LEAST_LABELS or min(relevant.sum(), (~relevant).sum()) < LEAST_ON_A_SIDE:
        return np.clip(np.where(np.isnan(pool.judge), 0.5, pool.judge), *CAUTION)
    unsaid = np.isnan(pool.judge)
    said = np.where(unsaid, np.nanmean(pool.judge) if not unsaid.all() else 0.0, pool.judge)
    beyond = int(pool.ranks.max()) + 1
    height = -np.log(np.where(pool.ranks > 0, pool.ranks, beyond)).mean(axis=0)
    terms = np.column_stack([said, said**2, unsaid, height, said * height])
    spread = terms.std(axis=0)
    terms = (terms - terms.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    design = np.column_stack([np.ones(len(terms)), terms])
    return _logistic(design, known, relevant.astype(np.float64))


def _logistic(design: Array, known: Array, label: Array) -> Array:
    """Newton's method, halving steps that go uphill; the penalty makes the loss strictly convex."""
    inside, weights = design[known], np.zeros(design.shape[1])
    penalty = np.diag([1e-3, *[1.0] * (design.shape[1] - 1)])

    def loss(at: Array) -> float:
        lean = inside @ at
        return float(np.logaddexp(0.0, lean).sum() - label @ lean + at @ penalty @ at / 2.0)

    for _ in range(50):
        chance = 1.0 / (1.0 + np.exp(-np.clip(inside @ weights, -30, 30)))
        slope = inside.T @ (chance - label) + penalty @ weights
        step = np.linalg.solve((inside * (chance * (1 - chance))[:, None]).T @ inside + penalty, slope)
        scale = 1.0
        while loss(weights - scale * step) > loss(weights) and scale > 1e-6:
            scale /= 2.0
        weights = weights - scale * step
        if float(np.abs(scale * step).max()) < 1e-9:
            break
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(design @ weights, -30, 30))))


def _mass(pool: Pool, guess: Array) -> Array:
    known = np.where(np.isnan(pool.known), guess, pool.known)
    everywhere = np.ones(pool.questions, dtype=bool)
    moved = figures(pool, known, np.ones(pool.questions), everywhere).influence
    doubt = np.where(np.isnan(pool.known), np.maximum(guess * (1.0 - guess), LEAST_DOUBT), 0.0)
    error = moved**2 * doubt
    whole = error.sum(axis=2, keepdims=True)
    share = np.divide(error, whole, out=np.zeros_like(error), where=whole > 0)
    by_metric = np.array([IMPORTANCE[metric] for metric in Metric])
    return np.asarray(np.sqrt((share.sum(axis=1) * by_metric[:, None]).sum(axis=0)))


def proportional(mass: Array, size: int, sure: Mask) -> Array:
    """Probabilities with sum ``size``: 1 where ``sure``, else in proportion to ``mass`` with ``UNIFORM_SHARE`` spread
    evenly; what would be above 1 is 1, and the rest is raised."""
    whole = float(mass.sum())
    even = np.full(len(mass), 1.0 / len(mass))
    blend = (1.0 - UNIFORM_SHARE) * (mass / whole if whole > 0 else even) + UNIFORM_SHARE * even
    certain = sure.copy()
    while True:
        probability = np.ones(len(mass))
        if certain.all():
            return probability
        rest = ~certain
        probability[rest] = (size - certain.sum()) * blend[rest] / blend[rest].sum()
        over = rest & (probability > 1.0)
        if not over.any():
            return probability
        certain = certain | over


def _systematic(probability: Array, random: np.random.Generator) -> Indices:
    """A sample of fixed size with exactly these probabilities: systematic sampling down a list in random order
    (W. G. Madow, 1949, Annals of Mathematical Statistics 20)."""
    order = random.permutation(len(probability))
    reached = np.floor(np.cumsum(probability[order]) + random.random() + 1e-9)
    return np.asarray(order[np.diff(reached, prepend=0.0) > 0])
