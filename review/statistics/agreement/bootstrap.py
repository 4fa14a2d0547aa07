"""Confidence intervals: bootstrap over groups within strata, and the exact interval of a proportion."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.core.scales import Scale
from review.statistics.agreement.catalogue import PROPORTIONS, batch_statistics
from review.statistics.agreement.layout import Layout
from review.statistics.agreement.statistic import Array, BatchStatistic, Indices, Undefined, factorize


def clopper_pearson(share: float, size: float, confidence: float = 0.95) -> tuple[float, float]:
    """Exact interval of a proportion, from 0 to 1.

    ``share`` (0 to 1) was observed in ``size`` independent answers. ``size`` may be fractional, such as an effective
    sample size. For a share of 1 the lower end is ``((1 - confidence) / 2) ** (1 / size)``.

    Source: C. J. Clopper and E. S. Pearson (1934), Biometrika 26. :raises ValueError: outside these ranges."""
    # Importing scipy takes 0.2 s.
    from scipy.special import betaincinv

    if not 0.0 <= share <= 1.0 or size <= 0 or not 0.0 < confidence < 1.0:
        raise ValueError("a proportion needs a share of 0 to 1 and a positive size")
    tail_probability = (1.0 - confidence) / 2.0
    successes = share * size
    low = float(betaincinv(successes, size - successes + 1.0, tail_probability)) if successes > 0 else 0.0
    high = float(betaincinv(successes + 1.0, size - successes, 1.0 - tail_probability)) if successes < size else 1.0
    return low, high


# Numbers per array: 16 MB.
CHUNK_CELLS = 2_000_000
# Largest table of group contents: 64 MB.
MAX_CONTENT_CELLS = 8_000_000
# Contents that differ by less differ by rounding only.
CONTENT_DIGITS = 12
# Intervals from fewer groups carry a warning.
FEW_GROUPS = 20


@dataclass(frozen=True, slots=True)
class Resampling:
    """Settings of the bootstrap. The same seed gives the same interval.

    ``groups`` and ``strata`` are aligned with the compared items; without groups every item is its own group. ``bca``
    adds bias correction and acceleration."""

    resamples: int = 2000
    seed: int = 0
    groups: Sequence[Hashable] | None = None
    strata: Sequence[Hashable] | None = None
    confidence: float = 0.95
    bca: bool = False


@dataclass(frozen=True, slots=True)
class Resampler:
    """Group of each item, shape (items,), and stratum of each group, shape (groups,)."""

    group: Indices
    stratum: Indices

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.stratum)

    def multiplicities(self, resamples: int, seed: int, chunk: int) -> Iterator[Array]:
        """Yield how often each group is drawn, with replacement within its stratum; arrays of up to (chunk, groups)."""
        random = np.random.default_rng(seed)
        members = [np.flatnonzero(self.stratum == stratum) for stratum in np.unique(self.stratum)]
        for start in range(0, resamples, chunk):
            rows = min(chunk, resamples - start)
            counts = np.zeros((rows, self.groups))
            for stratum in members:
                size = len(stratum)
                picks = random.integers(0, size, (rows, size)) + np.arange(rows)[:, None] * size
                counts[:, stratum] = np.bincount(picks.ravel(), minlength=rows * size).reshape(rows, size)
            yield counts

    def leave_one_out(self, chunk: int) -> Iterator[Array]:
        """Yield multiplicities that leave out one group each, for the jackknife."""
        for start in range(0, self.groups, chunk):
            rows = np.arange(start, min(start + chunk, self.groups))
            counts = np.ones((len(rows), self.groups))
            counts[np.arange(len(rows)), rows] = 0.0
            yield counts


def build_resampler(item_count: int, resampling: Resampling, positions: Indices) -> Resampler:
    """Build the resampler of the items at ``positions``.

    A group is drawn as a whole, so strata that share a group are merged. This widens the interval."""
    groups = list(resampling.groups) if resampling.groups is not None else list(range(item_count))
    strata = list(resampling.strata) if resampling.strata is not None else [0] * item_count
    if len(groups) != item_count or len(strata) != item_count:
        raise ValueError("groups and strata must be aligned with the items")
    group = factorize(groups[position] for position in positions)
    return Resampler(group, _merged_strata(group, [strata[position] for position in positions]))


def _merged_strata(group: Indices, strata: Sequence[Hashable]) -> Indices:
    """Stratum of each group, after merging strata that share a group."""
    parent: dict[Hashable, Hashable] = {stratum: stratum for stratum in strata}

    def root(stratum: Hashable) -> Hashable:
        while parent[stratum] != stratum:
            stratum = parent[stratum]
        return stratum

    first: dict[int, Hashable] = {}
    for member, stratum in zip(group.tolist(), strata, strict=True):
        parent[root(stratum)] = root(first.setdefault(member, stratum))
    return factorize(root(first[member]) for member in sorted(first))


def resampled_weights(
    resampler: Resampler, item_weight: Array, cell: Indices, cells: int, resampling: Resampling, largest_array: int = 0
) -> Iterator[Array]:
    """Yield the weight of every cell in each resample, shape (resamples, cells).

    ``item_weight`` and ``cell`` are aligned with the resampler's items. ``largest_array`` is the size of the largest
    array per resample that the caller derives from them.

    Groups of one stratum with the same content are interchangeable, so only the number of draws of each content
    matters, and it is multinomial. Ten thousand answers on a short scale have a few dozen contents. If the table of
    contents would be too large, every group is drawn separately."""
    resamples = resampling.resamples
    chunk = max(1, CHUNK_CELLS // max(len(cell), cells, largest_array, 1))
    if resampler.groups * cells > MAX_CONTENT_CELLS:
        for counts in resampler.multiplicities(resamples, resampling.seed, chunk):
            yield cell_weights(counts, resampler.group, item_weight, cell, cells)
        return
    content = np.bincount(resampler.group * cells + cell, weights=item_weight, minlength=resampler.groups * cells)
    rows = np.column_stack([resampler.stratum, np.round(content.reshape(resampler.groups, cells), CONTENT_DIGITS)])
    kinds, frequency = np.unique(rows, axis=0, return_counts=True)
    random = np.random.default_rng(resampling.seed)
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        drawn_counts = np.zeros((size, len(kinds)))
        for stratum in np.unique(kinds[:, 0]):
            in_stratum = kinds[:, 0] == stratum
            total = int(frequency[in_stratum].sum())
            drawn_counts[:, in_stratum] = random.multinomial(total, frequency[in_stratum] / total, size)
        yield np.asarray(drawn_counts @ kinds[:, 1:])


def cell_weights(multiplicities: Array, group: Indices, item_weight: Array, cell: Indices, cells: int) -> Array:
    """Resampled weight of every cell, shape (resamples, cells): the sum of item weight times multiplicity of its group.

    Small tables use one matrix product, large ones sorted sums."""
    groups = multiplicities.shape[1]
    if groups * cells <= CHUNK_CELLS:
        content = np.bincount(group * cells + cell, weights=item_weight, minlength=groups * cells)
        return np.asarray(multiplicities @ content.reshape(groups, cells))
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], np.arange(cells))
    return np.asarray(np.add.reduceat(multiplicities[:, group[order]] * item_weight[order], starts, axis=1))


def percentile_interval(values: Array, confidence: float) -> tuple[float, float]:
    """Middle ``confidence`` of the resampled values, with linear interpolation."""
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def bca_interval(values: Array, point: float, jackknife: Array, confidence: float) -> tuple[float, float]:
    """Bias-corrected and accelerated interval. Source: B. Efron (1987), JASA 82.

    If all resamples lie on one side of the point, the interval ends at the extreme resamples, the limit of the formula.
    """
    # Importing scipy takes 0.2 s.
    from scipy.special import ndtr, ndtri

    below = (np.count_nonzero(values < point) + np.count_nonzero(values == point) / 2.0) / len(values)
    edge = 0.5 / len(values)
    shift = ndtri(min(max(below, edge), 1.0 - edge))
    gap = jackknife.mean() - jackknife
    spread = float(np.square(gap).sum())
    acceleration = float((gap**3).sum()) / (6.0 * spread**1.5) if spread > 0 else 0.0
    tail = (1.0 - confidence) / 2.0
    ends = [shift + ndtri(tail), shift + ndtri(1.0 - tail)]
    shares = [float(ndtr(shift + end / max(1.0 - acceleration * end, 1e-6))) for end in ends]
    low, high = np.quantile(values, shares)
    return float(low), float(high)


# With more undefined resamples, an interval would describe only the defined ones.
MAX_UNDEFINED_SHARE = 0.05
# A narrower interval differs from a point by rounding only.
MIN_WIDTH = 1e-12

Interval = tuple[float, float]


def bootstrap_intervals(
    layout: Layout, scale: Scale, points: dict[str, float], resampler: Resampler, resampling: Resampling
) -> tuple[dict[str, Interval], dict[str, Undefined]]:
    """Interval of each statistic in ``points``, and the reason for each statistic without one.

    If all resamples of a proportion are equal (for example full agreement), it gets the exact interval for the
    effective number of groups. Other statistics without variation get none."""
    if resampler.groups < 2:
        return {}, dict.fromkeys(points, Undefined.TOO_FEW_GROUPS)
    resampled = _resampled_statistics(layout, scale, list(points), resampler, resampling, jackknife=False)
    jackknife = (
        _resampled_statistics(layout, scale, list(points), resampler, resampling, jackknife=True)
        if resampling.bca
        else {}
    )
    intervals: dict[str, Interval] = {}
    reasons: dict[str, Undefined] = {}
    for name, point in points.items():
        outcome = _statistic_interval(resampled[name], point, jackknife.get(name), resampling.confidence)
        # Yes/no values never differ by more than one.
        cannot_vary = name == "within_one" and scale.width <= 1
        if outcome is Undefined.NO_VARIATION and name in PROPORTIONS and not cannot_vary:
            size = _effective_groups(layout, resampler, name)
            outcome = clopper_pearson(min(max(point, 0.0), 1.0), size, resampling.confidence)
        if isinstance(outcome, Undefined):
            reasons[name] = outcome
        else:
            intervals[name] = outcome
    return intervals, reasons


def percentile_intervals(
    resampled: dict[str, BatchStatistic], confidence: float
) -> tuple[dict[str, Interval], dict[str, Undefined]]:
    """Percentile interval of each resampled statistic, and the reason for each statistic without one."""
    intervals: dict[str, Interval] = {}
    reasons: dict[str, Undefined] = {}
    for name, values in resampled.items():
        outcome = _statistic_interval(values, 0.0, None, confidence)
        if isinstance(outcome, Undefined):
            reasons[name] = outcome
        else:
            intervals[name] = outcome
    return intervals, reasons


def concatenate_batches(batches: Sequence[BatchStatistic]) -> BatchStatistic:
    return BatchStatistic(np.concatenate([b.values for b in batches]), np.concatenate([b.defined for b in batches]))


def _statistic_interval(
    resampled: BatchStatistic, point: float, jackknife: BatchStatistic | None, confidence: float
) -> Interval | Undefined:
    values = resampled.values[resampled.defined]
    if len(values) < (1.0 - MAX_UNDEFINED_SHARE) * len(resampled.values):
        return Undefined.OFTEN_UNDEFINED
    if jackknife is None:
        low, high = percentile_interval(values, confidence)
    else:
        low, high = bca_interval(values, point, jackknife.values[jackknife.defined], confidence)
    return (low, high) if high - low > MIN_WIDTH else Undefined.NO_VARIATION


def _resampled_statistics(
    layout: Layout, scale: Scale, names: list[str], resampler: Resampler, resampling: Resampling, *, jackknife: bool
) -> dict[str, BatchStatistic]:
    cells, largest_array = len(layout.judge), len(layout.category_values) ** 2
    batches: Iterator[Array]
    if jackknife:
        chunk = max(1, CHUNK_CELLS // max(len(layout.positions), largest_array, 1))
        left_out = resampler.leave_one_out(chunk)
        batches = (
            cell_weights(multiplicities, resampler.group, layout.item_weight, layout.cell, cells)
            for multiplicities in left_out
        )
    else:
        batches = resampled_weights(resampler, layout.item_weight, layout.cell, cells, resampling, largest_array)
    collected: dict[str, list[BatchStatistic]] = {name: [] for name in names}
    for weight in batches:
        for name, batch in batch_statistics(layout, scale, names, weight).items():
            collected[name].append(batch)
    return {name: concatenate_batches(statistic_batches) for name, statistic_batches in collected.items()}


def _effective_groups(layout: Layout, resampler: Resampler, name: str) -> float:
    """Kish's effective number of groups among the answers that a proportion is about: ``(sum W)^2 / sum W^2``."""
    weight: Array = layout.item_weight
    if name in {"tpr", "recall"}:
        weight = weight * (layout.expert_category[layout.cell] == 1)
    elif name == "tnr":
        weight = weight * (layout.expert_category[layout.cell] == 0)
    elif name == "precision":
        weight = weight * (layout.judge_category[layout.cell] == 1)
    by_group = np.bincount(resampler.group, weights=weight, minlength=resampler.groups)
    return float(by_group.sum() ** 2 / np.square(by_group).sum())
