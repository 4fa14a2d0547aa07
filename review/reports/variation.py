"""Intervals of judge-only and reviewed figures: how far they would vary over other questions like these. They say
nothing about errors of the judge."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from review.evidence.answers import RunAnswer
from review.reports.figure import Figure
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
