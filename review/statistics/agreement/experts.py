"""Agreement among the experts: reliability over all raters, every pair, and the ceiling for a judge."""

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
    build_resampler,
    concatenate_batches,
    percentile_intervals,
    resampled_weights,
)
from review.statistics.agreement.catalogue import (
    COINCIDENCE_STATISTICS,
    STATISTIC_NAMES,
    YES_NO_STATISTICS,
    RatedUnits,
    distinct_units,
    inapplicable_statistics,
    rated_units,
    reliability_statistics,
)
from review.statistics.agreement.ceiling import (
    AVERAGED_STATISTICS,
    AlternativeAnnotatorTest,
    Ceiling,
    alternative_annotator_test,
    averaged_statistics,
    ceiling,
    joint_intervals,
)
from review.statistics.agreement.kappa import unit_coincidences
from review.statistics.agreement.layout import Layout, build_layout
from review.statistics.agreement.pair import FEW_GROUPS_WARNING, PairAgreement, compare
from review.statistics.agreement.statistic import (
    Array,
    Indices,
    Item,
    Items,
    Rating,
    Statistic,
    Undefined,
    group_by_item,
    item_weights,
    rater_names,
)

ALL_RATER_STATISTICS = (*COINCIDENCE_STATISTICS, "fleiss_kappa")


@dataclass(frozen=True, slots=True)
class ExpertAgreement:
    """Agreement of the experts on one metric.

    ``n`` counts the items with two or more ratings. Items with one rating are counted in ``excluded``. They contribute
    to category frequencies in AC and Fleiss' kappa, as Gwet defines it, but not to agreement.

    ``statistics`` holds alpha, AC and Fleiss' kappa over all raters, who need not rate every item. The other statistics
    are means over pairs of raters, weighted by the items of a pair. All intervals, including those of pairs and
    ceiling, resample the same groups. ``coincidences[k][l]`` counts pairs of ratings with values k and l; an item with
    m ratings contributes m in total."""

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
        """Stable JSON form: the keys of a judge's agreement, and ``ratings, raters, fleiss_kappa, pairs, ceiling,
        alternative_annotator``."""
        undefined = {name: statistic.reason for name, statistic in self.statistics.items() if statistic.reason}
        undefined |= {f"intervals.{name}": reason for name, reason in self.interval_reasons.items()}
        test = self.alternative_annotator
        return {
            "n": self.n,
            "ratings": self.ratings,
            "raters": list(self.raters),
            "excluded": dict(self.excluded),
            **{name: self.statistics[name].value for name in (*STATISTIC_NAMES, "fleiss_kappa")},
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
    """Compare the experts with each other.

    With ``judge`` (item -> value) the result has the judge's side of the ceiling and the alternative-annotator test.
    ``groups`` and ``weights`` are by item; groups, strata and ``bca`` of ``resampling`` are ignored. Statistics with a
    direction, such as bias and true positive rate, are undefined.
    :raises ValueError: for a value off the scale or an item rated twice by a rater."""
    items = group_by_item(ratings)
    multiply_rated = sum(len(values) > 1 for values in items.values())
    unique_units, unique_index = distinct_units(rated_units(items, scale, tuple(bins)))
    item_weight = _normalized_weights(items, weights)
    pairs = _pair_agreements(items, scale, weights, bins)
    statistics = _statistics(
        unique_units,
        scale,
        bool(bins),
        _unique_unit_weights(item_weight, unique_index, unique_units),
        list(pairs.values()),
    )
    resampler = item_resampler(items, groups, resampling) if resampling is not None and items else None
    intervals: dict[str, Interval] = {}
    reasons: dict[str, Undefined] = {}
    if resampling is not None and resampler is not None:
        all_rater_names = [name for name in ALL_RATER_STATISTICS if statistics[name].value is not None]
        intervals, reasons = _reliability_intervals(
            unique_units, unique_index, scale, all_rater_names, item_weight, resampler, resampling
        )
        averaged = [name for name in AVERAGED_STATISTICS if name not in ALL_RATER_STATISTICS]
        pair_names = [name for name in averaged if statistics[name].value is not None]
        layouts = pair_layouts(items, scale, weights, bins)
        pair_intervals, pair_reasons = (
            joint_intervals(layouts, scale, pair_names, resampler, resampling) if pair_names else ({}, {})
        )
        intervals, reasons = intervals | pair_intervals, reasons | pair_reasons
    return ExpertAgreement(
        n=multiply_rated,
        ratings=len(ratings),
        raters=tuple(rater_names(items)),
        excluded={"single_rating": len(items) - multiply_rated} if len(items) > multiply_rated else {},
        statistics=statistics,
        coincidences=_coincidences(unique_units, _unique_unit_weights(item_weight, unique_index, unique_units)),
        labels=unique_units.labels,
        intervals=intervals,
        interval_reasons={name: str(reason) for name, reason in reasons.items()},
        pairs=pairs,
        ceiling=ceiling(items, scale, judge, bins, weights, resampling=resampling, resampler=resampler),
        alternative_annotator=None
        if judge is None
        else alternative_annotator_test(ratings, judge, scale, groups=groups),
        warnings=(FEW_GROUPS_WARNING,) if resampler is not None and resampler.groups < FEW_GROUPS else (),
    )


def _normalized_weights(items: Mapping[Item, object], weights: Mapping[Item, float] | None) -> Array:
    if weights is None or not items:
        return np.ones(len(items))
    item_weight = np.array([weights[item] for item in items], dtype=np.float64)
    return np.asarray(item_weight / item_weight.mean())


def _unique_unit_weights(item_weight: Array, unique_index: Indices, units: RatedUnits) -> Array:
    """Return the summed weight of the items of each distinct unit."""
    return np.bincount(unique_index, weights=item_weight, minlength=len(units.raters)).astype(np.float64)


def _pair_agreements(
    items: Items, scale: Scale, weights: Mapping[Item, float] | None, bins: Sequence[float]
) -> dict[str, PairAgreement]:
    """Agreement of every pair of raters that shares an item, under ``first-second`` in the order of their names."""
    pairs: dict[str, PairAgreement] = {}
    for first, second in combinations(rater_names(items), 2):
        shared = {item: values for item, values in items.items() if first in values and second in values}
        if shared:
            second_values, first_values = ([values[rater] for values in shared.values()] for rater in (second, first))
            pairs[f"{first}-{second}"] = compare(
                second_values, first_values, scale, item_weights(shared, weights), bins=bins
            )
    return pairs


def pair_layouts(
    items: Items, scale: Scale, weights: Mapping[Item, float] | None, bins: Sequence[float]
) -> list[Layout]:
    """Layouts of the pairs of :func:`_pair_agreements` over all items, so that they can be resampled together."""
    layouts = []
    for first, second in combinations(rater_names(items), 2):
        value_pairs = [(v[second], v[first]) if first in v and second in v else (None, None) for v in items.values()]
        if any(value is not None for value, _ in value_pairs):
            second_values, first_values = (
                [second_value for second_value, _ in value_pairs],
                [first_value for _, first_value in value_pairs],
            )
            layouts.append(build_layout(second_values, first_values, scale, item_weights(items, weights), bins))
    return layouts


def _statistics(
    units: RatedUnits, scale: Scale, binned: bool, unit_weight: Array, pairs: Sequence[PairAgreement]
) -> dict[str, Statistic]:
    inapplicable_reasons: dict[str, Undefined] = {"bias": Undefined.NO_DIRECTION}
    inapplicable_reasons |= dict.fromkeys(YES_NO_STATISTICS, Undefined.NO_DIRECTION)
    inapplicable_reasons |= {
        name: inapplicable_reason
        for name, inapplicable_reason in inapplicable_statistics(scale, binned).items()
        if name not in inapplicable_reasons
    }
    if not units.labels:
        inapplicable_reasons["fleiss_kappa"] = Undefined.NEEDS_BINNING
    reliabilities = reliability_statistics(
        units, scale, [name for name in ALL_RATER_STATISTICS if name not in inapplicable_reasons], unit_weight
    )
    means = averaged_statistics(pairs)
    statistics: dict[str, Statistic] = {}
    for name in (*STATISTIC_NAMES, "fleiss_kappa"):
        if name in inapplicable_reasons:
            statistics[name] = Statistic(None, str(inapplicable_reasons[name]))
        elif name in reliabilities:
            reason = Undefined.ONE_VALUE_ONLY if pairs else Undefined.TOO_FEW_RATERS
            statistics[name] = reliabilities[name].to_statistic(reason)
        else:
            statistics[name] = _mean_of_pairs(name, means[name], pairs)
    return statistics


def _mean_of_pairs(name: str, mean: float | None, pairs: Sequence[PairAgreement]) -> Statistic:
    if mean is not None:
        return Statistic(mean)
    return Statistic(None, pairs[0].statistics[name].reason if pairs else str(Undefined.TOO_FEW_RATERS))


def _coincidences(units: RatedUnits, unit_weight: Array) -> tuple[tuple[float, ...], ...] | None:
    if not units.labels:
        return None
    counts = unit_coincidences(units.counts, unit_weight, units.category_values).counts
    return tuple(tuple(float(cell) for cell in row) for row in counts.tolist())


def item_resampler(
    items: Mapping[Item, object], groups: Mapping[Item, Hashable] | None, resampling: Resampling
) -> Resampler:
    """Build a resampler of all items, by group or, without groups, by item."""
    group_of_item = list(items) if groups is None else [groups[item] for item in items]
    settings = Resampling(resampling.resamples, resampling.seed, group_of_item)
    return build_resampler(len(items), settings, np.arange(len(items), dtype=np.int64))


def _reliability_intervals(
    units: RatedUnits,
    unique_index: Indices,
    scale: Scale,
    names: list[str],
    item_weight: Array,
    resampler: Resampler,
    resampling: Resampling,
) -> tuple[dict[str, Interval], dict[str, Undefined]]:
    if resampler.groups < 2 or not names:
        return {}, dict.fromkeys(names, Undefined.TOO_FEW_GROUPS)
    size, largest_array = len(units.raters), len(units.labels) ** 2
    batches = [
        reliability_statistics(units, scale, names, unit_weights)
        for unit_weights in resampled_weights(resampler, item_weight, unique_index, size, resampling, largest_array)
    ]
    return percentile_intervals(
        {name: concatenate_batches([batch[name] for batch in batches]) for name in names}, resampling.confidence
    )
