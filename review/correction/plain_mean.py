"""Judge-only and reviewed means: figures as they came, with the variation over questions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from review.correction.influence import Influence
from review.correction.interval import FEW_GROUPS, interval
from review.correction.outcome import Estimate, Method, Outcome, Target, Warn, Withheld, WithheldReason


def mean_over_questions(
    values: Sequence[float], groups: Sequence[Hashable], bounds: tuple[float, float], confidence: float = 0.95
) -> Outcome:
    """The mean of given values, with a cluster-robust interval over groups: how it would vary over questions like
    these. It says nothing about the judge's error. ``None`` as a group is a group of its own.

    Withheld without values, with fewer than two groups, and where nothing varies.
    """
    target = Target.QUESTIONS_LIKE_THESE
    if not values:
        return Withheld(WithheldReason.NO_VALUES, target, 0, 0)
    array = np.array(values, dtype=np.float64)
    deviation = (array - array.mean()) / len(array)
    influence = Influence(float(array.mean()), np.zeros(len(array)), deviation, Method.MEAN, None)
    ends = interval(influence, groups, [False] * len(array), target, bounds, confidence)
    if ends is None:
        return Withheld(WithheldReason.TOO_FEW_GROUPS, target, len(array), 0, {"groups": 1})
    if ends.high - ends.low <= 0:
        return Withheld(WithheldReason.NOT_ESTIMABLE, target, len(array), 0)
    warnings = [Warn.CLIPPED] if ends.clipped else []
    warnings += [Warn.FEW_GROUPS] if ends.groups < FEW_GROUPS else []
    return Estimate(
        value=influence.value,
        low=ends.low,
        high=ends.high,
        target=target,
        method=Method.MEAN,
        n=len(array),
        labels=0,
        warnings=tuple(warnings),
    )
