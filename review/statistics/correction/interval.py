"""The degrees of freedom of a variance over groups: fewer than groups less one where a few large groups carry it.

From an influence to an interval for a target.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Indices
from review.statistics.correction.influence import Influence, clustered_variance, t_quantile
from review.statistics.correction.outcome import Target


def group_freedom(sizes: Indices) -> float:
    """Groups less one for groups of equal size, less where sizes differ: the freedom of a chi-squared with the same
    mean and variance as the sum of squares over groups (F. E. Satterthwaite, 1946, Biometrics 2), were the groups'
    means independent and alike in variance (R. M. Bell, D. F. McCaffrey, 2002, Survey Methodology 28; the working
    model of G. W. Imbens, M. Kolesar, 2016, Review of Economics and Statistics 98).

    With shares ``h`` of the answers and group means ``u`` the sum is ``u'Mu``, ``M = (I - h1') diag(h^2) (I - 1h')``;
    its freedom is ``tr(M)^2 / tr(M^2)``, in time linear in the groups. At least 1; two groups always have 1.
    """
    if len(sizes) < 3:
        return 1.0
    share = np.asarray(sizes, dtype=np.float64) / float(np.sum(sizes))
    square = share * share
    total = float(square.sum())
    crossed, of_squares = float(share @ square), float(square @ square)
    trace = total - 2.0 * crossed + total * total
    middle = np.array([[total, -1.0], [-1.0, 0.0]])
    inner = np.array([[total, crossed], [crossed, of_squares]])
    turned = middle @ inner
    squared = of_squares - 4.0 * float((square * square) @ share) + 2.0 * total * of_squares
    squared += float(np.trace(turned @ turned))
    found = trace * trace / squared if squared > 0 else 1.0
    return min(len(sizes) - 1.0, max(1.0, found))


FEW_GROUPS = 20


@dataclass(frozen=True, slots=True)
class Ends:
    """An interval, whether it was cut at the scale's ends, and how many groups carried it (0 for ``this_run``)."""

    low: float
    high: float
    clipped: bool
    groups: int


def interval(
    influence: Influence,
    groups: Sequence[Hashable],
    labelled: Sequence[bool],
    target: Target,
    bounds: tuple[float, float],
    confidence: float,
) -> Ends | None:
    """The interval, clipped to ``bounds``; ``None`` for questions like these with fewer than two groups.

    ``this_run``: design variance, t with the estimate's degrees of freedom. ``questions_like_these``: variance of
    the groups' summed influence, t with one less than the groups (fewer where their sizes differ, and not more than
    those with a label, where labels were used) and not more than the estimate's own.
    """
    freedom: float | None = influence.freedom
    variance, count = influence.design_variance, 0
    if target is Target.QUESTIONS_LIKE_THESE:
        variance, sizes = clustered_variance(influence.population, list(groups))
        count = len(sizes)
        if count < 2:
            return None
        freedom = _group_freedom(influence, groups, labelled, group_freedom(sizes))
    half = t_quantile(0.5 + confidence / 2, max(1, freedom or 1)) * math.sqrt(variance) if variance > 0 else 0.0
    low, high = influence.value - half - influence.below, influence.value + half + influence.above
    return Ends(
        min(max(low, bounds[0]), bounds[1]),
        max(min(high, bounds[1]), bounds[0]),
        low < bounds[0] - 1e-12 or high > bounds[1] + 1e-12,
        count,
    )


def _group_freedom(
    influence: Influence, groups: Sequence[Hashable], labelled: Sequence[bool], of_groups: float
) -> float:
    if influence.freedom is None:
        return of_groups
    with_label = {
        (at if group is None else ("group", group))
        for at, (group, has) in enumerate(zip(groups, labelled, strict=True))
        if has
    }
    return max(1.0, min(of_groups, len(with_label) - 1, influence.freedom))
