"""Several differences at once: how far each must be from 0 so that, with no true difference at all, any is called one
in at most 5% of the cases; and the places of runs in an order that are sure at that level.

Max-t over paired resamples of groups (P. H. Westfall, S. S. Young, 1993, Resampling-Based Multiple Testing, 2.3): in
each resample the runs of every group of questions are swapped or not, the same for all differences, so that differences
which hang together (several runs against one baseline, metrics of the same answers) do not count as so many. Each
resampled t is read as the p-value of its own degrees of freedom, because metrics may have different groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array
from review.statistics.correction.outcome import Deviation, two_sided

ERROR = 0.05
RESAMPLES = 10_000
PAIR_RESAMPLES = 2_000  # of fifty runs there are 1,225 pairs
CHUNK_CELLS = 2_000_000


@dataclass(frozen=True, slots=True)
class Family:
    """``error`` is held over all ``size`` differences; ``level`` is what that leaves for each: ``error`` for one alone,
    never less than ``error / size``. ``p_values`` are adjusted, in the order given: such a value is at most ``error``
    exactly where the interval at ``1 - level`` leaves out 0."""

    size: int
    level: float
    p_values: tuple[float, ...]
    error: float = ERROR

    @property
    def confidence(self) -> float:
        """The confidence of each interval."""
        return 1.0 - self.level


def family_of(
    differences: Sequence[Deviation], *, resamples: int = RESAMPLES, seed: int = 0, error: float = ERROR
) -> Family:
    """Hold the error over the differences. One alone is tested as it stands."""
    size = len(differences)
    own = [one.p_value for one in differences]
    if size < 2:
        return Family(size, error, tuple(own), error)
    least = np.sort(_least_p_values(differences, resamples, seed))
    level = float(np.clip(least[max(0, int(error * (resamples + 1)) - 1)], error / size, error))
    reached = (np.searchsorted(least, own, side="right") + 1) / (resamples + 1)
    adjusted = np.clip(reached, own, np.minimum(1.0, np.array(own) * size))
    return Family(size, level, tuple(float(p) for p in adjusted), error)


def _least_p_values(differences: Sequence[Deviation], resamples: int, seed: int) -> Array:
    """The smallest p-value among the differences in each resample: of ``t = N / sqrt((A - N^2 / G) G / (G - 1))``,
    where N is the sum over G groups with swapped signs and A that of the squares."""
    names = list(dict.fromkeys(group for one in differences for group in one.sums))
    place = {group: at for at, group in enumerate(names)}
    sums = np.zeros((len(names), len(differences)))
    for at, one in enumerate(differences):
        sums[[place[group] for group in one.sums], at] = list(one.sums.values())
    groups = np.array([len(one.sums) for one in differences], dtype=np.float64)
    freedom = np.array([one.freedom for one in differences])
    squares = np.square(sums).sum(axis=0)
    found = []
    for swapped in swapped_sums(sums, resamples, seed):
        rest = np.maximum((squares - np.square(swapped) / groups) * groups / (groups - 1.0), 1e-300)
        found.append(two_sided(swapped / np.sqrt(rest), freedom).min(axis=1))
    return np.concatenate(found)


def swapped_sums(sums: Array, resamples: int, seed: int) -> Iterator[Array]:
    """The sums over groups (rows of ``sums``) with the sign of each group drawn anew for every resample, so many
    resamples at a time that what is drawn for them stays small."""
    random, whole = np.random.default_rng(seed), sums.sum(axis=0)
    chunk = max(1, CHUNK_CELLS // max(sums.shape))
    for start in range(0, resamples, chunk):
        kept = random.integers(0, 2, (min(chunk, resamples - start), len(sums)), dtype=np.int8)
        yield 2.0 * (kept.astype(np.float64) @ sums) - whole


def sure_places(runs: int, leads: Mapping[tuple[int, int], Deviation], *, seed: int = 0) -> list[tuple[int, int]]:
    """The first and last place that each of the runs may have (1 is best), sure for all runs together. ``leads`` are
    the differences of pairs that vary, the first minus the second; a run stands surely behind those that are better
    with the error held over all pairs (M. Mogstad, J. Romano, A. Shaikh, D. Wilhelm, 2024, Review of Economic Studies
    91)."""
    above, below = [0] * runs, [0] * runs
    found = family_of(list(leads.values()), resamples=PAIR_RESAMPLES, seed=seed)
    for ((first, second), lead), p in zip(leads.items(), found.p_values, strict=True):
        if p <= found.error:
            better, worse = (first, second) if lead.value > 0 else (second, first)
            above[worse] += 1
            below[better] += 1
    return [(1 + better, runs - worse) for better, worse in zip(above, below, strict=True)]
