"""What several experts said together about one answer: a mean, or the majority for classes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from evaluation.core.scales import Scale, ScaleKind

MEAN_DIGITS = 9  # means are rounded here before halves go up, so that 2.4999999999 from weighting counts as 2.5


def consensus(values: Sequence[float | str], scale: Scale) -> float | str | None:
    """The unrounded mean of the ratings; for classes the most frequent label, ``None`` where two are tied for it.

    :raises ValueError: without any rating.
    """
    if not values:
        raise ValueError("no ratings to agree on")
    if scale.kind is ScaleKind.CLASS:
        ranked = Counter(str(value) for value in values).most_common(2)
        return None if len(ranked) == 2 and ranked[0][1] == ranked[1][1] else ranked[0][0]
    return math.fsum(float(value) for value in values) / len(values)


def rounded_half_up(mean: float) -> int:
    """The level next to a mean of levels; a mean exactly between two levels gives the upper one, on negative scales
    too (-0.5 becomes 0)."""
    return math.floor(round(mean, MEAN_DIGITS) + 0.5)
