"""Composite of review rounds: their weights, and the influence of their weighted sum.

Each round is estimated over the frame it was drawn from, in which the answers of earlier rounds are certain. Given the
rounds before it, the estimate of a round is unbiased. With weights that depend on sizes only, so is the weighted sum,
and the rounds' variances add: estimates of successive samples are uncorrelated (W. G. Cochran, 1977, Sampling
Techniques, 12.11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.correction.frame import Component, EarlierRound, ReviewState
from review.statistics.correction.outcome import Influence, Method

# Weight of a round whose size may depend on the ratings of earlier rounds.
UNPLANNED_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class RoundSize:
    """Number of answers that reviewers reached first in a round (at least 0), and whether the round was planned before
    the ratings of earlier rounds were read."""

    reached: int
    planned: bool


def rounds_of(component: Component) -> tuple[EarlierRound, ...]:
    """Rounds of a component in order; the last one has the component's own frame."""
    return (*component.earlier, EarlierRound(component.frame, component.planned))


def round_sizes(component: Component) -> list[RoundSize]:
    """Size of each round of a component, in order.

    An answer counts in the first round that sampled it, once reviewers reached it. Answers with a standing rating count
    in none. For a finished round this is the number of answers drawn; for a round in progress it does not depend on the
    ratings either."""
    sizes, sampled_before = [], component.frame.standing.copy()
    for review_round in rounds_of(component):
        frame = review_round.frame
        reached = (frame.state == ReviewState.RATED) | (frame.state == ReviewState.NO_RESPONSE)
        sizes.append(RoundSize(int((reached & frame.sampled & ~sampled_before).sum()), review_round.planned))
        sampled_before |= frame.sampled
    return sizes


def round_weights(frame_size: int, sizes: Sequence[RoundSize], usable: Sequence[bool]) -> list[float]:
    """Weights of the rounds in the composite, in order: at least 0, with sum 1. ``frame_size`` is the number of answers
    of the frame without a standing rating; rounds that are not ``usable`` have weight 0.

    Planned rounds are weighted by ``1 / R_r - 1 / R_(r-1)``, where ``R_r`` answers are left after round r. This is the
    inverse of the variance of a simple sample of them, so the composite of simple samples has the variance of one
    sample of all their answers. An unplanned round has a weight of 1/2 and the rounds before it share the rest, because
    its size may depend on their ratings. A round after which no answer is left is exact and has the weight 1.

    :raises ValueError: if no round is usable."""
    weights, total, left = [0.0] * len(sizes), 0.0, frame_size
    for position, (size, is_usable) in enumerate(zip(sizes, usable, strict=True)):
        before, left = left, left - size.reached
        if not is_usable:
            continue
        precision = 1.0 / left - 1.0 / before if left > 0 else float("inf")
        share = _share(size, precision, total)
        weights = [weight * (1.0 - share) for weight in weights]
        weights[position] = share
        total += precision
    if not any(weights):
        raise ValueError("no round is usable")
    return weights


def _share(size: RoundSize, precision: float, total: float) -> float:
    """Weight of a round against all rounds before it, whose precisions add up to ``total``."""
    if total == 0.0 or precision == float("inf"):
        return 1.0
    if not size.reached:
        return 0.0
    return precision / (total + precision) if size.planned else UNPLANNED_WEIGHT


def combine_influences(influences: Sequence[Influence], weights: Sequence[float]) -> Influence:
    """Influence of the weighted sum of rounds over the same answers.

    Influences add up per answer, so that also answers which count in several rounds are allowed for. The degrees of
    freedom are those of F. E. Satterthwaite (1946, Biometrics 2), ``(sum V_r)^2 / sum (V_r^2 / freedom_r)`` with V_r
    the squared weight times the variance of round r; ``None`` if nothing was estimated. For questions like these they
    add up, because each round has labels of its own.

    The allowance for unseen answers stands for a quarter of a label in the whole sample. Each round has its weight's
    share of it, so that equal rounds allow for as much as one draw of all their answers."""
    pairs = list(zip(influences, weights, strict=True))
    variances = [(weight**2 * influence.design_variance, influence.freedom) for influence, weight in pairs]
    denominator = sum(variance**2 / freedom for variance, freedom in variances if freedom)
    freedoms = [influence.freedom for influence in influences if influence.freedom is not None]
    slopes = [(influence.slope, weight) for influence, weight in pairs if influence.slope is not None]
    return Influence(
        value=sum(weight * influence.value for influence, weight in pairs),
        design=np.asarray(sum(weight * influence.design for influence, weight in pairs)),
        population=np.asarray(sum(weight * influence.population for influence, weight in pairs)),
        method=Method.COMPOSITE,
        freedom=sum(variance for variance, _ in variances) ** 2 / denominator
        if denominator > 0
        else min(freedoms, default=None),
        below=sum(weight * influence.below for influence, weight in pairs),
        above=sum(weight * influence.above for influence, weight in pairs),
        slope=sum(slope * weight for slope, weight in slopes) / sum(weight for _, weight in slopes) if slopes else None,
        unseen=sum(weight**3 * influence.unseen for influence, weight in pairs),
        label_freedom=sum(freedoms) or None,
    )
