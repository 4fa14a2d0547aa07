"""Sampling where the judge is unsure of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evaluation.core.errors import Refused
from review.agreement.statistic import Array

UNIFORM_SHARE = 0.5  # half of the size is spread evenly, so that no answer's weight explodes


def uncertainty_probabilities(keys: Sequence[int], spread: Mapping[int, float], size: int) -> Array:
    """The probability of each answer under Poisson sampling with expected size ``size``.

    Half proportional to the spread, half uniform; an answer without a spread has the uniform half. Probabilities
    above 1 are cut and the rest raised, so that their sum stays ``size``.

    :raises Refused: ``no_spread`` where no answer has a positive spread.
    """
    values = np.array([max(0.0, spread.get(key, 0.0)) for key in keys], dtype=np.float64)
    if not np.isfinite(values).all() or values.sum() <= 0:
        raise Refused("no_spread")
    mass = (1.0 - UNIFORM_SHARE) * values / values.sum() + UNIFORM_SHARE / len(values)
    sure = np.zeros(len(values), dtype=bool)
    while True:
        probability = np.where(sure, 1.0, 0.0)
        if not sure.all():
            probability[~sure] = (size - sure.sum()) * mass[~sure] / mass[~sure].sum()
        over = (probability > 1.0) & ~sure
        if not over.any():
            return np.asarray(np.clip(probability, 0.0, 1.0))
        sure |= over
