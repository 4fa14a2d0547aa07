"""The reliability curve: where the judge gives a certain value, what do the experts give on average?"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.core.registry import Scale, ScaleKind
from review.statistics.agreement.rating import rounded_half_up
from review.statistics.agreement.statistic import Array

MOST_BINS = 10  # of a continuous scale, equally filled


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Answers to which the judge gave about the same: its mean value there and the experts', with a 95% interval of
    the latter; ``low`` and ``high`` are ``None`` where too few groups of answers, or no variation, allow none."""

    judge: float
    expert: float
    low: float | None
    high: float | None
    n: int

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {"judge": self.judge, "expert": self.expert, "low": self.low, "high": self.high, "n": self.n}


def reliability_curve(
    judge: Sequence[float | str | None],
    expert_means: Sequence[float | str | None],
    scale: Scale,
    weights: Sequence[float] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> tuple[CurvePoint, ...]:
    """One point for each level the judge gave, for reals for each of up to ten equally filled bins; from left to right.

    A judge whose scores mean what the experts' mean lies on the diagonal. Intervals are of the weighted mean, robust
    to answers that belong together (linearised, as for a ratio: W. G. Cochran, 1977, Sampling Techniques, 6.4), with
    t of groups - 1 degrees of freedom, and end with the scale. Classes have no order and no curve.
    """
    if scale.kind is ScaleKind.CLASS:
        return ()
    kept = [
        at
        for at, (ours, theirs) in enumerate(zip(judge, expert_means, strict=True))
        if ours is not None and theirs is not None and scale.holds_mean(float(ours))
    ]
    ours, theirs = (np.array([float(side[at] or 0.0) for at in kept]) for side in (judge, expert_means))
    weight = np.array([1.0 if weights is None else weights[at] for at in kept])
    group = [at if groups is None else groups[at] for at in kept]
    bins = _bins(ours, scale)
    return tuple(_point(ours, theirs, weight, group, scale, bins == one) for one in np.unique(bins))


def _bins(values: Array, scale: Scale) -> Array:
    """The level next to each value; for reals the equally filled bin it falls into."""
    if scale.levels:
        return np.array([float(rounded_half_up(value)) for value in values])
    if len(values) == 0:
        return values
    count = min(MOST_BINS, max(1, len(values) // 5))
    edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, count + 1)[1:-1]))
    return np.searchsorted(edges, values, side="right").astype(np.float64)


def _point(
    ours: Array, theirs: Array, weight: Array, group: Sequence[Hashable], scale: Scale, chosen: np.ndarray
) -> CurvePoint:
    share = weight[chosen] / weight[chosen].sum()
    mean = float(share @ theirs[chosen])
    number: dict[Hashable, int] = {}
    place = [number.setdefault(group[at], len(number)) for at in np.flatnonzero(chosen).tolist()]
    count = len(number)
    low = high = None
    if count > 1:
        off = np.bincount(place, weights=share * (theirs[chosen] - mean), minlength=count)
        error = math.sqrt(count / (count - 1) * float(np.square(off).sum()))
        if error > 1e-12:
            reach = _t(count - 1) * error
            low, high = max(scale.low, mean - reach), min(scale.high, mean + reach)
    return CurvePoint(float(share @ ours[chosen]), mean, low, high, int(chosen.sum()))


def _t(freedom: int) -> float:
    from scipy.special import stdtrit  # costs 0.2 s at import

    return float(stdtrit(freedom, 0.975))
