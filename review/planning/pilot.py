"""What earlier ratings tell a planner: how far the experts are from the judge, by stratum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

PILOT_LABELS = 5  # with fewer ratings of a stratum its deviation is taken from all strata together


def pilot_deviations(
    residuals: Mapping[str, Sequence[float]], sizes: Mapping[str, int], floor: float
) -> dict[str, float]:
    """The standard deviation of the residuals (expert minus b times judge) of each stratum in ``sizes``.

    A stratum with fewer than 5 ratings takes the deviation of all together. ``floor`` (in the scale's units, such as
    a tenth of its width) keeps a stratum in which the pilot saw no difference from being given up.
    """
    every = [value for values in residuals.values() for value in values]
    together = _deviation(every) if len(every) >= 2 else floor
    return {
        str(name): max(
            floor, _deviation(residuals[str(name)]) if len(residuals.get(str(name), ())) >= PILOT_LABELS else together
        )
        for name in sizes
    }


def _deviation(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
