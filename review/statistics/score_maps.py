"""Monotone maps from judge scores to expert labels: the nondecreasing step function closest to the labels.

A monotone map keeps the order of answers, so it can only correct how a judge uses its scale. Its gain is measured by
cross-validation (:func:`cross_validate_map`), because a fit to the same labels is optimistic.

A map that pulls all scores to the middle also lowers the squared distance, but carries less information. Lin's
concordance coefficient, which includes the spread, falls in that case, and the map is rejected."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.acceptance import mean_difference
from review.statistics.agreement.statistic import Array, factorize

FOLDS = 10
# No map is fitted with fewer groups.
MIN_GROUPS = 30
_DIGITS = 6
Knots = tuple[tuple[float, float], ...]


def fit_score_map(scores: Array, labels: Array, weights: Array, levels: Sequence[int]) -> Knots:
    """Knots of the map by isotonic regression.

    With ``levels`` each level maps to a level: the isotonic fit is rounded, which gives the best such map. Levels that
    the judge never used keep their value as far as the map stays monotone. Without levels the ends of the isotonic
    steps are joined by straight lines."""
    # Importing scipy takes 0.2 s.
    from scipy.optimize import isotonic_regression

    distinct_scores, score_index = np.unique(scores, return_inverse=True)
    weight = np.bincount(score_index, weights=weights)
    mean_label = np.bincount(score_index, weights=weights * labels) / weight
    steps = np.asarray(isotonic_regression(mean_label, weights=weight).x, dtype=np.float64)
    if levels:
        steps = np.floor(steps + 0.5)
        knots = [(float(level), _mapped_level(level, distinct_scores, steps)) for level in levels]
    else:
        step_start = np.r_[True, np.diff(steps) != 0]
        step_edge = step_start | np.r_[np.diff(steps) != 0, True]
        knots = [
            (round(float(x), _DIGITS), round(float(y), _DIGITS))
            for x, y in zip(distinct_scores[step_edge], steps[step_edge], strict=True)
        ]
    return tuple(knots)


def _mapped_level(level: int, distinct_scores: Array, steps: Array) -> float:
    if level < distinct_scores[0]:
        return min(float(level), float(steps[0]))
    if level > distinct_scores[-1]:
        return max(float(level), float(steps[-1]))
    return float(np.floor(np.interp(level, distinct_scores, steps) + 0.5))


def apply_score_map(knots: Knots, scores: Array) -> Array:
    """Map scores by linear interpolation between the knots."""
    map_inputs, map_outputs = zip(*knots, strict=True)
    return np.asarray(np.interp(scores, map_inputs, map_outputs), dtype=np.float64)


def concordance(scores: Array, labels: Array, weights: Array) -> float:
    """Lin's concordance coefficient, ``2 cov / (var + var + (mean - mean)^2)``, from -1 to 1; 0 if neither side
    varies."""
    share = weights / weights.sum()
    score_deviation, label_deviation = scores - (share * scores).sum(), labels - (share * labels).sum()
    squared_bias = float((share * (scores - labels)).sum()) ** 2
    denominator = float((share * (score_deviation**2 + label_deviation**2)).sum()) + squared_bias
    return 2 * float((share * score_deviation * label_deviation).sum()) / denominator if denominator > 0 else 0.0


@dataclass(frozen=True, slots=True)
class MapEvaluation:
    """Cross-validated effect of a map.

    ``gain`` is the decrease of the mean squared distance to ``loss``, with the 95% interval ``low`` to ``high`` (t over
    groups; ``None`` if nothing varies). ``before`` and ``after`` are the concordance without and with the map."""

    n: int
    loss: float
    gain: float
    low: float | None
    high: float | None
    before: float
    after: float

    @property
    def reduces_error(self) -> bool:
        """Return whether the gain is significant: its whole interval is above 0."""
        return (self.gain if self.low is None else self.low) > 0

    @property
    def is_useful(self) -> bool:
        """Return whether the map reduces the error and also raises the concordance."""
        return self.reduces_error and self.after > self.before


def cross_validate_map(
    scores: Array, labels: Array, weights: Array, groups: Sequence[Hashable], levels: Sequence[int]
) -> MapEvaluation | None:
    """Cross-validate the map over ten folds of whole groups, assigned in order of first appearance.

    ``None`` with fewer than 30 groups."""
    group_index = factorize(groups)
    if len(set(groups)) < MIN_GROUPS:
        return None
    fold_of_answer, mapped = group_index % FOLDS, np.empty_like(scores)
    for held_out_fold in range(FOLDS):
        held_out = fold_of_answer == held_out_fold
        knots = fit_score_map(scores[~held_out], labels[~held_out], weights[~held_out], levels)
        mapped[held_out] = apply_score_map(knots, scores[held_out])
    before, after = np.square(scores - labels), np.square(mapped - labels)
    gain = mean_difference(before - after, weights, group_index)
    low, high = gain.interval
    return MapEvaluation(
        n=len(scores),
        loss=float(np.average(after, weights=weights)),
        gain=float(gain.mean),
        low=low,
        high=high,
        before=concordance(scores, labels, weights),
        after=concordance(mapped, labels, weights),
    )
