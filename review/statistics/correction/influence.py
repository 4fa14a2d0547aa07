"""An estimate together with what each answer adds to its variance, so that estimates can be summed and compared."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array, Indices
from review.statistics.correction.outcome import Method


@dataclass(frozen=True, slots=True)
class Influence:
    """``value`` with, per answer of the frame, ``design`` (its share of the deviation due to having rated a sample;
    the squares sum to the variance for ``this_run``) and ``population`` (its share of the deviation from the mean
    over questions like these; summed by group, then squared).

    ``below`` and ``above`` are added to the interval where the variance says nothing. ``freedom`` are the degrees of
    freedom of ``design``; ``None`` where nothing was estimated.
    """

    value: float
    design: Array
    population: Array
    method: Method
    freedom: int | None
    below: float = 0.0
    above: float = 0.0
    slope: float | None = None

    def equivalent_variance(self, confidence: float) -> float:
        """The variance for which an interval by t alone would be as wide as this one for ``this_run``."""
        if not (self.below or self.above):
            return self.design_variance
        extra = (self.below + self.above) / 2.0 / t_quantile(0.5 + confidence / 2.0, max(1, self.freedom or 1))
        return float((np.sqrt(self.design_variance) + extra) ** 2)

    @property
    def design_variance(self) -> float:
        """The variance for ``this_run``, the finite-population correction included."""
        return float(np.square(self.design).sum())


def t_quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t; ``freedom`` is at least 1."""
    from scipy.special import stdtrit  # costs 0.2 s at import

    return float(stdtrit(freedom, probability))


def clustered_variance(population: Array, groups: list[Hashable]) -> tuple[float, Indices]:
    """The cluster-robust variance ``G / (G - 1) sum_g (sum_{i in g} psi_i)^2``, and how many answers each of the G
    groups has. An answer without a group (``None``) is its own."""
    number: dict[Hashable, int] = {}
    member = [
        number.setdefault(("alone", position) if group is None else ("group", group), len(number))
        for position, group in enumerate(groups)
    ]
    sums = np.bincount(member, weights=population, minlength=len(number))
    count = len(number)
    sizes = np.bincount(member, minlength=len(number))
    return (float(np.square(sums).sum()) * count / (count - 1) if count > 1 else 0.0), sizes
