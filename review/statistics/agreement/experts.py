"""The experts among themselves: reliability over all, every pair, and the ceiling it sets for a judge."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from evaluation.core.scales import Scale
from review.statistics.agreement.bootstrap import (
    FEW_GROUPS,
    Interval,
    Resampler,
    Resampling,
    intervals_of,
    joined,
    resampled_weights,
    resampler,
)
from review.statistics.agreement.catalogue import (
    NAMES,
    OF_COINCIDENCES,
    OF_YES_NO,
    Units,
    distinct,
    inapplicable,
    reliability,
    units,
)
from review.statistics.agreement.ceiling import (
    AVERAGED,
    AlternativeAnnotatorTest,
    Ceiling,
    alternative_annotator_test,
    averaged,
    ceiling,
    joint_intervals,
)
from review.statistics.agreement.kappa import of_units
from review.statistics.agreement.layout import Layout, lay_out
from review.statistics.agreement.pair import FEW_GROUPS_WARNING, PairAgreement, compare
from review.statistics.agreement.statistic import (
    Array,
    Indices,
    Item,
    Items,
    Rating,
    Statistic,
    Undefined,
    by_item,
    raters_of,
    weights_of,
)

OVER_ALL = (*OF_COINCIDENCES, "fleiss_kappa")


@dataclass(frozen=True, slots=True)
class ExpertAgreement:
    """Agreement of the experts on one metric.

    ``n``: items with two or more ratings; the others are counted in ``excluded`` and tell AC and Fleiss' kappa how
    frequent a category is, as Gwet defines it, but nothing about agreement. ``statistics``: alphas, AC and
    Fleiss' kappa over all raters with gaps; the others are means over the pairs of raters, weighted by the items a
    pair shares. Intervals resample the same groups everywhere, those of pairs and of the
    ceiling too. ``coincidences[k][l]``: pairable values, each item entering with as many as it has ratings.
    """

    n: int
    ratings: int
    raters: tuple[str, ...]
    excluded: Mapping[str, int]
    statistics: Mapping[str, Statistic]
    coincidences: tuple[tuple[float, ...], ...] | None
    labels: tuple[str | float, ...]
    intervals: Mapping[str, Interval]
    interval_reasons: Mapping[str, str]
    pairs: Mapping[str, PairAgreement]
    ceiling: Ceiling
    alternative_annotator: AlternativeAnnotatorTest | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The stable form: the keys of a judge's agreement, and ``ratings, raters, fleiss_kappa, pairs, ceiling,
        alternative_annotator``."""
        undefined = {name: found.reason for name, found in self.statistics.items() if found.reason}
        undefined |= {f"intervals.{name}": reason for name, reason in self.interval_reasons.items()}
        test = self.alternative_annotator
        return {
            "n": self.n,
            "ratings": self.ratings,
            "raters": list(self.raters),
            "excluded": dict(self.excluded),
            **{name: self.statistics[name].value for name in (*NAMES, "fleiss_kappa")},
            "confusion": None if self.coincidences is None else [list(row) for row in self.coincidences],
            "labels": list(self.labels),
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
            "undefined": undefined,
            "pairs": {name: pair.to_dict() for name, pair in self.pairs.items()},
            "ceiling": self.ceiling.to_dict(),
            "alternative_annotator": None if test is None else test.to_dict(),
        }


def compare_experts(
    ratings: Sequence[Rating],
    scale: Scale,
    *,
    judge: Mapping[Item, float | str] | None = None,
    groups: Mapping[Item, Hashable] | None = None,
    weights: Mapping[Item, float] | None = None,
    resampling: Resampling | None = None,
    bins: Sequence[float] = (),
) -> ExpertAgreement:
    """How far the experts agree; with ``judge`` (item -> value) also the judge beside them and the
    alternative-annotator test. ``groups`` and ``weights`` are by item; those of ``resampling`` and its
    ``bca`` are not read.

    Statistics with a direction (bias, true positive rate and the like) do not exist among equals.

    :raises ValueError: for a value off the scale or an item rated twice by a rater.
    """
    items = by_item(ratings)
    several = sum(len(values) > 1 for values in items.values())
    found, kind = distinct(units(items, scale, tuple(bins)))
    weight = _weights(items, weights)
    pairs = _pairs(items, scale, weights, bins)
    statistics = _statistics(found, scale, bool(bins), _of_kinds(weight, kind, found), list(pairs.values()))
    drawn = resampler_of(items, groups, resampling) if resampling is not None and items else None
    intervals: dict[str, Interval] = {}
    reasons: dict[str, Undefined] = {}
    if resampling is not None and drawn is not None:
        over_all = [name for name in OVER_ALL if statistics[name].value is not None]
        intervals, reasons = _intervals(found, kind, scale, over_all, weight, drawn, resampling)
        by_pair = [name for name in AVERAGED if name not in OVER_ALL and statistics[name].value is not None]
        layouts = pair_layouts(items, scale, weights, bins)
        more, missing = joint_intervals(layouts, scale, by_pair, drawn, resampling) if by_pair else ({}, {})
        intervals, reasons = intervals | more, reasons | missing
    return ExpertAgreement(
        n=several,
        ratings=len(ratings),
        raters=tuple(raters_of(items)),
        excluded={"single_rating": len(items) - several} if len(items) > several else {},
        statistics=statistics,
        coincidences=_coincidences(found, _of_kinds(weight, kind, found)),
        labels=found.labels,
        intervals=intervals,
        interval_reasons={name: str(reason) for name, reason in reasons.items()},
        pairs=pairs,
        ceiling=ceiling(items, scale, judge, bins, weights, resampling=resampling, drawn=drawn),
        alternative_annotator=None
        if judge is None
        else alternative_annotator_test(ratings, judge, scale, groups=groups),
        warnings=(FEW_GROUPS_WARNING,) if drawn is not None and drawn.groups < FEW_GROUPS else (),
    )


def _weights(items: Mapping[Item, object], weights: Mapping[Item, float] | None) -> Array:
    if weights is None or not items:
        return np.ones(len(items))
    chosen = np.array([weights[item] for item in items], dtype=np.float64)
    return np.asarray(chosen / chosen.mean())


def _of_kinds(weight: Array, kind: Indices, found: Units) -> Array:
    """The weight of each distinct unit."""
    return np.bincount(kind, weights=weight, minlength=len(found.raters)).astype(np.float64)


def _pairs(
    items: Items, scale: Scale, weights: Mapping[Item, float] | None, bins: Sequence[float]
) -> dict[str, PairAgreement]:
    """Every pair of raters that shares an item, under ``first-second`` in the order of their names."""
    pairs: dict[str, PairAgreement] = {}
    for first, second in combinations(raters_of(items), 2):
        shared = {item: values for item, values in items.items() if first in values and second in values}
        if shared:
            ours, theirs = ([values[who] for values in shared.values()] for who in (second, first))
            pairs[f"{first}-{second}"] = compare(ours, theirs, scale, weights_of(shared, weights), bins=bins)
    return pairs


def pair_layouts(
    items: Items, scale: Scale, weights: Mapping[Item, float] | None, bins: Sequence[float]
) -> list[Layout]:
    """The pairs of :func:`_pairs`, laid out from all items, so that they can be resampled together."""
    found = []
    for first, second in combinations(raters_of(items), 2):
        both = [(v[second], v[first]) if first in v and second in v else (None, None) for v in items.values()]
        if any(ours is not None for ours, _ in both):
            ours, theirs = [one for one, _ in both], [other for _, other in both]
            found.append(lay_out(ours, theirs, scale, weights_of(items, weights), bins))
    return found


def _statistics(
    found: Units, scale: Scale, binned: bool, weight: Array, pairs: Sequence[PairAgreement]
) -> dict[str, Statistic]:
    barred: dict[str, Undefined] = {"bias": Undefined.NO_DIRECTION}
    barred |= dict.fromkeys(OF_YES_NO, Undefined.NO_DIRECTION)
    barred |= {name: why for name, why in inapplicable(scale, binned).items() if name not in barred}
    if not found.labels:
        barred["fleiss_kappa"] = Undefined.NEEDS_BINNING
    over_all = reliability(found, scale, [name for name in OVER_ALL if name not in barred], weight)
    means = averaged(pairs)
    statistics: dict[str, Statistic] = {}
    for name in (*NAMES, "fleiss_kappa"):
        if name in barred:
            statistics[name] = Statistic(None, str(barred[name]))
        elif name in over_all:
            reason = Undefined.ONE_VALUE_ONLY if pairs else Undefined.TOO_FEW_RATERS
            statistics[name] = over_all[name].single(reason)
        else:
            statistics[name] = _mean_of_pairs(name, means[name], pairs)
    return statistics


def _mean_of_pairs(name: str, mean: float | None, pairs: Sequence[PairAgreement]) -> Statistic:
    if mean is not None:
        return Statistic(mean)
    return Statistic(None, pairs[0].statistics[name].reason if pairs else str(Undefined.TOO_FEW_RATERS))


def _coincidences(found: Units, weight: Array) -> tuple[tuple[float, ...], ...] | None:
    if not found.labels:
        return None
    counts = of_units(found.counts, weight, found.category_values).counts
    return tuple(tuple(float(cell) for cell in row) for row in counts.tolist())


def resampler_of(
    items: Mapping[Item, object], groups: Mapping[Item, Hashable] | None, resampling: Resampling
) -> Resampler:
    """How all items are resampled: by their groups, or each by itself."""
    by_order = list(items) if groups is None else [groups[item] for item in items]
    plan = Resampling(resampling.resamples, resampling.seed, by_order)
    return resampler(len(items), plan, np.arange(len(items), dtype=np.int64))


def _intervals(
    found: Units,
    kind: Indices,
    scale: Scale,
    names: list[str],
    weight: Array,
    drawn: Resampler,
    resampling: Resampling,
) -> tuple[dict[str, Interval], dict[str, Undefined]]:
    if drawn.groups < 2 or not names:
        return {}, dict.fromkeys(names, Undefined.TOO_FEW_GROUPS)
    size, widest = len(found.raters), len(found.labels) ** 2
    batches = [
        reliability(found, scale, names, resampled)
        for resampled in resampled_weights(drawn, weight, kind, size, resampling, widest)
    ]
    return intervals_of({name: joined([batch[name] for batch in batches]) for name in names}, resampling.confidence)
