"""Simultaneous tests of several differences, and rank intervals of runs, at a familywise error of 5%.

Max-t over paired resamples of groups (P. H. Westfall, S. S. Young, 1993, Resampling-Based Multiple Testing, 2.3). Each
resample swaps the runs of every group of questions or not, alike for all differences. Correlated differences (several
runs against one baseline, metrics of the same answers) therefore cost less than independent ones. Each resampled t is
read as the p-value of its own degrees of freedom, because metrics may have different groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array
from review.statistics.correction.outcome import Deviation, two_sided

ERROR_RATE = 0.05
RESAMPLES = 10_000
# Fifty runs have 1,225 pairs.
PAIR_RESAMPLES = 2_000
# Fits a processor's cache.
CHUNK_CELLS = 200_000


@dataclass(frozen=True, slots=True)
class DifferenceFamily:
    """Adjusted tests of ``size`` differences with a familywise ``error``.

    ``level`` is the resulting level of each test: ``error`` for a single difference, never less than ``error / size``.
    ``p_values`` are adjusted, in the given order. A p-value is at most ``error`` exactly if the interval at ``1 -
    level`` excludes 0."""

    size: int
    level: float
    p_values: tuple[float, ...]
    error: float = ERROR_RATE

    @property
    def confidence(self) -> float:
        """Confidence of each interval."""
        return 1.0 - self.level


def difference_family(
    differences: Sequence[Deviation], *, resamples: int = RESAMPLES, seed: int = 0, error: float = ERROR_RATE
) -> DifferenceFamily:
    """Test the differences at a familywise error. A single difference needs no adjustment."""
    size = len(differences)
    own_p_values = [difference.p_value for difference in differences]
    if size < 2:
        return DifferenceFamily(size, error, tuple(own_p_values), error)
    smallest = np.sort(_smallest_p_values(differences, resamples, seed))
    level = float(np.clip(smallest[max(0, int(error * (resamples + 1)) - 1)], error / size, error))
    resampled_p_values = (np.searchsorted(smallest, own_p_values, side="right") + 1) / (resamples + 1)
    adjusted = np.clip(resampled_p_values, own_p_values, np.minimum(1.0, np.array(own_p_values) * size))
    return DifferenceFamily(size, level, tuple(float(p) for p in adjusted), error)


def _smallest_p_values(differences: Sequence[Deviation], resamples: int, seed: int) -> Array:
    """Smallest p-value among the differences in each resample.

    ``t = N / sqrt((A - N^2 / G) G / (G - 1))``, with N the sum over G groups with swapped signs and A that of the
    squares."""
    group_names = list(dict.fromkeys(group for difference in differences for group in difference.sums))
    row_of_group = {group: index for index, group in enumerate(group_names)}
    sums = np.zeros((len(group_names), len(differences)))
    for index, difference in enumerate(differences):
        sums[[row_of_group[group] for group in difference.sums], index] = list(difference.sums.values())
    groups = np.array([len(difference.sums) for difference in differences], dtype=np.float64)
    freedom = np.array([difference.freedom for difference in differences])
    squares = np.square(sums).sum(axis=0)
    smallest = []
    for resampled_sums in swapped_sums(sums, resamples, seed):
        variance = np.maximum((squares - np.square(resampled_sums) / groups) * groups / (groups - 1.0), 1e-300)
        smallest.append(two_sided(resampled_sums / np.sqrt(variance), freedom).min(axis=1))
    return np.concatenate(smallest)


def swapped_sums(sums: Array, resamples: int, seed: int) -> Iterator[Array]:
    """Yield sums over groups (rows of ``sums``) with a random sign for each group and resample, in chunks."""
    random, total = np.random.default_rng(seed), sums.sum(axis=0)
    chunk = max(1, CHUNK_CELLS // max(sums.shape))
    for start in range(0, resamples, chunk):
        random_bytes = random.integers(0, 256, (min(chunk, resamples - start), -(-len(sums) // 8)), dtype=np.uint8)
        unswapped = np.unpackbits(random_bytes, axis=1, count=len(sums)).astype(np.float64)
        yield 2.0 * (unswapped @ sums) - total


def rank_bounds(runs: int, leads: Mapping[tuple[int, int], Deviation], *, seed: int = 0) -> list[tuple[int, int]]:
    """First and last possible rank of each run (1 is best), with simultaneous confidence for all runs.

    ``leads`` are the differences of pairs that vary, the first minus the second. A run ranks behind those that are
    better at a familywise error over all pairs (M. Mogstad, J. Romano, A. Shaikh, D. Wilhelm, 2024, Review of Economic
    Studies 91)."""
    better_runs, worse_runs = [0] * runs, [0] * runs
    family = difference_family(list(leads.values()), resamples=PAIR_RESAMPLES, seed=seed)
    for ((first, second), lead), p in zip(leads.items(), family.p_values, strict=True):
        if p <= family.error:
            better, worse = (first, second) if lead.value > 0 else (second, first)
            better_runs[worse] += 1
            worse_runs[better] += 1
    return [
        (1 + better_count, runs - worse_count)
        for better_count, worse_count in zip(better_runs, worse_runs, strict=True)
    ]
