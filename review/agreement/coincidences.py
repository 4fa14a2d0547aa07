"""Ratings of units by any number of raters, with gaps, reduced to what alpha, AC and Fleiss' kappa need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from review.agreement.pairs import Confusion
from review.agreement.statistic import Array


@dataclass(frozen=True, slots=True)
class Coincidences:
    """Pairable values by category, for a batch of weightings.

    ``counts[..., k, l]``: coincidences, every unit with m ratings entering with weight m (Krippendorff).
    ``shares[..., k, l]``: share of rating pairs, every unit with 2 or more ratings entering equally; sums to 1.
    ``prevalence[..., k]``: mean share of a category over all units with a rating.
    """

    counts: Array
    shares: Array
    prevalence: Array
    values: Array

    @property
    def pairable(self) -> Array:
        """Weight of the units that have at least two ratings, as a flag-like total with the batch's shape."""
        return np.asarray(self.counts.sum(axis=(-2, -1)))

    def distances(self) -> Array:
        """Absolute differences of the categories' values."""
        return np.asarray(np.abs(self.values[:, None] - self.values[None, :]))


def of_pair(table: Confusion) -> Coincidences:
    """The coincidences of one judge and one (mean) expert: every unit has exactly two ratings."""
    counts = table.cells + np.swapaxes(table.cells, -2, -1)
    shares = counts / _nonzero(counts.sum(axis=(-2, -1)))[..., None, None]
    return Coincidences(counts, shares, shares.sum(axis=-1), table.values)


def of_units(ratings: Array, weight: Array, values: Array) -> Coincidences:
    """The coincidences of units; ``ratings[u, k]`` counts the raters who gave unit u category k, ``weight`` has
    shape (..., units)."""
    size = ratings.shape[1]
    raters = ratings.sum(axis=1)
    ordered = ratings[:, :, None] * ratings[:, None, :] - ratings[:, :, None] * np.eye(size)
    ordered = ordered.reshape(len(ratings), size * size)
    several = (raters >= 2).astype(np.float64)
    per_value = several / np.where(raters >= 2, raters - 1, 1)
    per_pair = several / np.where(raters >= 2, raters * (raters - 1), 1)
    batch = (*weight.shape[:-1], size, size)
    counts = (weight @ (ordered * per_value[:, None])).reshape(batch)
    shares = (weight @ (ordered * per_pair[:, None])).reshape(batch) / _nonzero(weight @ several)[..., None, None]
    rated = (raters > 0).astype(np.float64)
    mix = ratings / np.where(raters > 0, raters, 1)[:, None]
    return Coincidences(counts, shares, (weight @ mix) / _nonzero(weight @ rated)[..., None], values)


def _nonzero(total: Array) -> Array:
    return np.asarray(np.where(total > 0, total, 1.0))
