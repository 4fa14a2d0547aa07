"""Intervals of statistics: bootstrap over groups of answers within strata, and the exact interval of a proportion."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.core.scales import Scale
from review.statistics.agreement.catalogue import PROPORTIONS, figures
from review.statistics.agreement.layout import Layout
from review.statistics.agreement.statistic import Array, Figures, Indices, Undefined, numbered


def clopper_pearson(share: float, size: float, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a share (0 to 1) seen in ``size`` independent answers, which need not be whole (an effective
    size). With a share of 1 the lower end is ``((1 - confidence) / 2) ** (1 / size)``.

    Source: C. J. Clopper and E. S. Pearson (1934), Biometrika 26. :raises ValueError: outside these ranges.
    """
    from scipy.special import betaincinv  # costs 0.2 s at import

    if not 0.0 <= share <= 1.0 or size <= 0 or not 0.0 < confidence < 1.0:
        raise ValueError("a proportion needs a share of 0 to 1 and a positive size")
    tail = (1.0 - confidence) / 2.0
    hits = share * size
    low = float(betaincinv(hits, size - hits + 1.0, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1.0, size - hits, 1.0 - tail)) if hits < size else 1.0
    return low, high


CHUNK_CELLS = 2_000_000  # numbers held at once per array: 16 MB
CONTENT_CELLS = 8_000_000  # largest table of what every group holds: 64 MB
KIND_DIGITS = 12  # contents that differ by less differ by rounding only
FEW_GROUPS = 20  # below this the interval carries a warning


@dataclass(frozen=True, slots=True)
class Resampling:
    """How intervals are made. ``groups`` and ``strata`` are aligned with the items compared; without groups every
    item is its own. The same seed gives the same interval. ``bca`` adds bias correction and acceleration."""

    resamples: int = 2000
    seed: int = 0
    groups: Sequence[Hashable] | None = None
    strata: Sequence[Hashable] | None = None
    confidence: float = 0.95
    bca: bool = False


@dataclass(frozen=True, slots=True)
class Resampler:
    """Items in groups, groups in strata. ``group`` has shape (items,), ``stratum`` (groups,)."""

    group: Indices
    stratum: Indices

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.stratum)

    def multiplicities(self, resamples: int, seed: int, chunk: int) -> Iterator[Array]:
        """How often each group is drawn, with replacement and its stratum's size kept; arrays (up to chunk, groups)."""
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
        """Multiplicities that leave out one group each, for the jackknife."""
        for start in range(0, self.groups, chunk):
            rows = np.arange(start, min(start + chunk, self.groups))
            counts = np.ones((len(rows), self.groups))
            counts[np.arange(len(rows)), rows] = 0.0
            yield counts


def resampler(items: int, resampling: Resampling, kept: Indices) -> Resampler:
    """The resampler of the kept items (positions in 0..items). Strata that share a group are resampled as one,
    because a group is drawn whole; that widens the interval rather than narrowing it."""
    groups = list(resampling.groups) if resampling.groups is not None else list(range(items))
    strata = list(resampling.strata) if resampling.strata is not None else [0] * items
    if len(groups) != items or len(strata) != items:
        raise ValueError("groups and strata must be aligned with the items")
    group = numbered(groups[position] for position in kept)
    return Resampler(group, _merged_strata(group, [strata[position] for position in kept]))


def _merged_strata(group: Indices, strata: Sequence[Hashable]) -> Indices:
    """The stratum of each group, strata being joined wherever a group lies in several."""
    parent: dict[Hashable, Hashable] = {stratum: stratum for stratum in strata}

    def root(stratum: Hashable) -> Hashable:
        while parent[stratum] != stratum:
            stratum = parent[stratum]
        return stratum

    first: dict[int, Hashable] = {}
    for member, stratum in zip(group.tolist(), strata, strict=True):
        parent[root(stratum)] = root(first.setdefault(member, stratum))
    return numbered(root(first[member]) for member in sorted(first))


def resampled_weights(
    plan: Resampler, item_weight: Array, cell: Indices, cells: int, resampling: Resampling, widest: int = 0
) -> Iterator[Array]:
    """The weight of every cell in each resample, shape (some resamples, cells); ``item_weight`` and ``cell`` are
    aligned with the plan's items, ``widest`` is the largest array per resample that the caller makes of them.

    Groups of one stratum that hold the same are interchangeable, so that only how many of each kind are drawn matters:
    that number is multinomial. Ten thousand answers of a short scale become a few dozen kinds. Where the table of
    contents would be too large every group is drawn by itself.
    """
    resamples = resampling.resamples
    chunk = max(1, CHUNK_CELLS // max(len(cell), cells, widest, 1))
    if plan.groups * cells > CONTENT_CELLS:
        for counts in plan.multiplicities(resamples, resampling.seed, chunk):
            yield folded(counts, plan.group, item_weight, cell, cells)
        return
    content = np.bincount(plan.group * cells + cell, weights=item_weight, minlength=plan.groups * cells)
    rows = np.column_stack([plan.stratum, np.round(content.reshape(plan.groups, cells), KIND_DIGITS)])
    kinds, frequency = np.unique(rows, axis=0, return_counts=True)
    random = np.random.default_rng(resampling.seed)
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        drawn = np.zeros((size, len(kinds)))
        for stratum in np.unique(kinds[:, 0]):
            of = kinds[:, 0] == stratum
            total = int(frequency[of].sum())
            drawn[:, of] = random.multinomial(total, frequency[of] / total, size)
        yield np.asarray(drawn @ kinds[:, 1:])


def folded(multiplicities: Array, group: Indices, item_weight: Array, cell: Indices, cells: int) -> Array:
    """Resampled weight of every cell: the sum over the cell's items of weight times its group's multiplicity.

    Shape (resamples, cells). Small tables go through one matrix product, large ones through sorted sums.
    """
    groups = multiplicities.shape[1]
    if groups * cells <= CHUNK_CELLS:
        content = np.bincount(group * cells + cell, weights=item_weight, minlength=groups * cells)
        return np.asarray(multiplicities @ content.reshape(groups, cells))
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], np.arange(cells))
    return np.asarray(np.add.reduceat(multiplicities[:, group[order]] * item_weight[order], starts, axis=1))


def percentile_interval(values: Array, confidence: float) -> tuple[float, float]:
    """The middle ``confidence`` of the resampled values, with linear interpolation."""
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def bca_interval(values: Array, point: float, jackknife: Array, confidence: float) -> tuple[float, float]:
    """The bias-corrected and accelerated interval. Source: B. Efron (1987), JASA 82.

    Falls back on nothing: where all resamples lie on one side of the point the percentiles are those of the extreme
    resamples, which is what the formula tends to.
    """
    from scipy.special import ndtr, ndtri  # costs 0.2 s at import

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


LARGEST_UNDEFINED_SHARE = 0.05  # with more undefined resamples than this an interval would describe the rest only
NARROWEST = 1e-12  # below it the resamples are all alike but for rounding

Interval = tuple[float, float]


def bootstrap_intervals(
    layout: Layout, scale: Scale, points: dict[str, float], resampler: Resampler, resampling: Resampling
) -> tuple[dict[str, Interval], dict[str, Undefined]]:
    """The interval of each statistic in ``points``, and the reason for each one that has none.

    A proportion whose resamples are all alike (the judge agreed everywhere, say) gets the exact interval for the
    effective number of groups instead; other statistics without variation get none.
    """
    if resampler.groups < 2:
        return {}, dict.fromkeys(points, Undefined.TOO_FEW_GROUPS)
    resampled = _resampled(layout, scale, list(points), resampler, resampling, jackknife=False)
    jackknife = _resampled(layout, scale, list(points), resampler, resampling, jackknife=True) if resampling.bca else {}
    found: dict[str, Interval] = {}
    missing: dict[str, Undefined] = {}
    for name, point in points.items():
        outcome = _interval(resampled[name], point, jackknife.get(name), resampling.confidence)
        cannot_vary = name == "within_one" and scale.width <= 1  # yes/no values never differ by more
        if outcome is Undefined.NO_VARIATION and name in PROPORTIONS and not cannot_vary:
            size = _effective_groups(layout, resampler, name)
            outcome = clopper_pearson(min(max(point, 0.0), 1.0), size, resampling.confidence)
        if isinstance(outcome, Undefined):
            missing[name] = outcome
        else:
            found[name] = outcome
    return found, missing


def intervals_of(resampled: dict[str, Figures], confidence: float) -> tuple[dict[str, Interval], dict[str, Undefined]]:
    """The percentile interval of each resampled statistic, and the reason for each one that has none."""
    intervals: dict[str, Interval] = {}
    reasons: dict[str, Undefined] = {}
    for name, values in resampled.items():
        outcome = _interval(values, 0.0, None, confidence)
        if isinstance(outcome, Undefined):
            reasons[name] = outcome
        else:
            intervals[name] = outcome
    return intervals, reasons


def joined(batches: Sequence[Figures]) -> Figures:
    """Batches of one statistic after each other."""
    return Figures(np.concatenate([b.values for b in batches]), np.concatenate([b.defined for b in batches]))


def _interval(resampled: Figures, point: float, jackknife: Figures | None, confidence: float) -> Interval | Undefined:
    values = resampled.values[resampled.defined]
    if len(values) < (1.0 - LARGEST_UNDEFINED_SHARE) * len(resampled.values):
        return Undefined.OFTEN_UNDEFINED
    if jackknife is None:
        low, high = percentile_interval(values, confidence)
    else:
        low, high = bca_interval(values, point, jackknife.values[jackknife.defined], confidence)
    return (low, high) if high - low > NARROWEST else Undefined.NO_VARIATION


def _resampled(
    layout: Layout, scale: Scale, names: list[str], resampler: Resampler, resampling: Resampling, *, jackknife: bool
) -> dict[str, Figures]:
    cells, widest = len(layout.judge), len(layout.category_values) ** 2
    batches: Iterator[Array]
    if jackknife:
        chunk = max(1, CHUNK_CELLS // max(len(layout.kept), widest, 1))
        left_out = resampler.leave_one_out(chunk)
        batches = (folded(one, resampler.group, layout.item_weight, layout.cell, cells) for one in left_out)
    else:
        batches = resampled_weights(resampler, layout.item_weight, layout.cell, cells, resampling, widest)
    collected: dict[str, list[Figures]] = {name: [] for name in names}
    for weight in batches:
        for name, batch in figures(layout, scale, names, weight).items():
            collected[name].append(batch)
    return {name: joined(found) for name, found in collected.items()}


def _effective_groups(layout: Layout, resampler: Resampler, name: str) -> float:
    """Kish's effective number of groups among the answers a proportion is about: ``(sum W)^2 / sum W^2``."""
    weight: Array = layout.item_weight
    if name in {"tpr", "recall"}:
        weight = weight * (layout.expert_category[layout.cell] == 1)
    elif name == "tnr":
        weight = weight * (layout.expert_category[layout.cell] == 0)
    elif name == "precision":
        weight = weight * (layout.judge_category[layout.cell] == 1)
    by_group = np.bincount(resampler.group, weights=weight, minlength=resampler.groups)
    return float(by_group.sum() ** 2 / np.square(by_group).sum())
