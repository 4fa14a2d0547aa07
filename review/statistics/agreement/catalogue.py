"""Catalogue of the agreement statistics: their input, the scales they apply to, and the ratings of several raters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from evaluation.core.scales import Scale, ScaleKind
from review.statistics.agreement.kappa import (
    Coincidences,
    cohen_kappa,
    cohen_kappa_linear,
    cohen_kappa_quadratic,
    fleiss_kappa,
    gwet_ac1,
    gwet_ac2,
    interval_alpha_of_reals,
    krippendorff_alpha_interval,
    krippendorff_alpha_nominal,
    krippendorff_alpha_ordinal,
    pair_coincidences,
    unit_coincidences,
)
from review.statistics.agreement.layout import Categories, Confusion, Layout, Pairs
from review.statistics.agreement.pair_statistics import (
    balanced_accuracy,
    bias,
    exact,
    f1,
    kendall_tau_b,
    mae,
    pearson,
    precision,
    rmse,
    spearman,
    true_negative_rate,
    true_positive_rate,
    within_one,
)
from review.statistics.agreement.statistic import Array, BatchStatistic, Indices, Item, Undefined

VALUE_STATISTICS: dict[str, Callable[[Pairs], BatchStatistic]] = {
    "mae": mae,
    "bias": bias,
    "rmse": rmse,
    "pearson": pearson,
    "spearman": spearman,
    "kendall_tau_b": kendall_tau_b,
}
CONFUSION_STATISTICS: dict[str, Callable[[Confusion], BatchStatistic]] = {
    "exact": exact,
    "within_one": within_one,
    "cohen_kappa": cohen_kappa,
    "cohen_kappa_linear": cohen_kappa_linear,
    "cohen_kappa_quadratic": cohen_kappa_quadratic,
}
COINCIDENCE_STATISTICS: dict[str, Callable[[Coincidences], BatchStatistic]] = {
    "krippendorff_alpha_nominal": krippendorff_alpha_nominal,
    "krippendorff_alpha_ordinal": krippendorff_alpha_ordinal,
    "krippendorff_alpha_interval": krippendorff_alpha_interval,
    "gwet_ac1": gwet_ac1,
    "gwet_ac2": gwet_ac2,
}
YES_NO_STATISTICS: dict[str, Callable[[Confusion], BatchStatistic]] = {
    "tpr": true_positive_rate,
    "tnr": true_negative_rate,
    "precision": precision,
    "recall": true_positive_rate,
    "f1": f1,
    "balanced_accuracy": balanced_accuracy,
}
STATISTIC_NAMES = (
    "exact",
    "within_one",
    "mae",
    "bias",
    "rmse",
    "pearson",
    "spearman",
    "kendall_tau_b",
    "cohen_kappa",
    "cohen_kappa_linear",
    "cohen_kappa_quadratic",
    "krippendorff_alpha_nominal",
    "krippendorff_alpha_ordinal",
    "krippendorff_alpha_interval",
    "gwet_ac1",
    "gwet_ac2",
    "tpr",
    "tnr",
    "precision",
    "recall",
    "f1",
    "balanced_accuracy",
)
NOMINAL_STATISTICS = frozenset({"exact", "cohen_kappa", "krippendorff_alpha_nominal", "gwet_ac1"})
CORRELATIONS = frozenset({"pearson", "spearman", "kendall_tau_b"})
PROPORTIONS = frozenset({"exact", "within_one", "tpr", "tnr", "precision", "recall"})
_YES_NO_REASONS = {
    "tpr": Undefined.NO_EXPERT_POSITIVE,
    "recall": Undefined.NO_EXPERT_POSITIVE,
    "tnr": Undefined.NO_EXPERT_NEGATIVE,
    "precision": Undefined.NO_JUDGE_POSITIVE,
    "f1": Undefined.NO_POSITIVE,
    "balanced_accuracy": Undefined.ONE_EXPERT_CLASS,
}


def inapplicable_statistics(scale: Scale, binned: bool) -> dict[str, Undefined]:
    """Statistics that do not exist on a scale, with the reason."""
    reasons: dict[str, Undefined] = {}
    if scale.kind is not ScaleKind.YES_NO:
        reasons |= dict.fromkeys(YES_NO_STATISTICS, Undefined.YES_NO_ONLY)
    if scale.kind is ScaleKind.CLASS:
        reasons |= {
            name: Undefined.CLASSES_HAVE_NO_ORDER
            for name in STATISTIC_NAMES
            if name not in NOMINAL_STATISTICS | set(YES_NO_STATISTICS)
        }
    if scale.kind in {ScaleKind.REAL, ScaleKind.SECONDS} and not binned:
        by_level = (
            level_statistic
            for level_statistic in (*CONFUSION_STATISTICS, *COINCIDENCE_STATISTICS)
            if level_statistic != "krippendorff_alpha_interval"
        )
        reasons |= dict.fromkeys(by_level, Undefined.NEEDS_BINNING)
    return reasons


def batch_statistics(layout: Layout, scale: Scale, names: list[str], weight: Array) -> dict[str, BatchStatistic]:
    """Compute the named statistics for every weighting in ``weight``, shape (..., distinct pairs)."""
    pairs = layout.pairs(weight)
    results = {name: VALUE_STATISTICS[name](pairs) for name in names if name in VALUE_STATISTICS}
    real = scale.kind in {ScaleKind.REAL, ScaleKind.SECONDS}
    if real and "krippendorff_alpha_interval" in names:
        results["krippendorff_alpha_interval"] = _interval_alpha(pairs)
    by_category = [name for name in names if name not in results]
    if by_category:
        table = layout.confusion(weight)
        coincidences = pair_coincidences(table)
        for name in by_category:
            if name in COINCIDENCE_STATISTICS:
                results[name] = COINCIDENCE_STATISTICS[name](coincidences)
            else:
                results[name] = (CONFUSION_STATISTICS.get(name) or YES_NO_STATISTICS[name])(table)
    return results


def _interval_alpha(pairs: Pairs) -> BatchStatistic:
    rater_count = np.full(len(pairs.judge), 2.0)
    squares = np.square(pairs.judge) + np.square(pairs.expert)
    return interval_alpha_of_reals(rater_count, pairs.judge + pairs.expert, squares, pairs.weight)


def undefined_reason(name: str, pairs: Pairs) -> Undefined:
    """Reason why a statistic that exists on the scale is undefined for these pairs (batch of one)."""
    if not (pairs.weight > 0).any():
        return Undefined.NO_PAIRS
    if name in CORRELATIONS:
        return pairs.constant_side_reason()
    return _YES_NO_REASONS.get(name, Undefined.ONE_VALUE_ONLY)


@dataclass(frozen=True, slots=True)
class RatedUnits:
    """Ratings by item: number of raters per category, number of ratings, their sum and their sum of squares."""

    counts: Array
    raters: Array
    total: Array
    squares: Array
    category_values: Array
    labels: tuple[str | float, ...]


def rated_units(items: Mapping[Item, Mapping[str, float | str]], scale: Scale, bins: tuple[float, ...]) -> RatedUnits:
    """Count the ratings of all items, in order.

    :raises ValueError: for a value off the scale."""
    categories = Categories(scale, bins)
    # Many items have few different values.
    to_number, find_category = cache(partial(_numeric_value, scale=scale)), cache(categories.category_index)
    values = [[to_number(value) for value in ratings.values()] for ratings in items.values()]
    counts = np.zeros((len(values), len(categories.labels)))
    if categories.labels:
        for row, numbers in enumerate(values):
            for number in numbers:
                counts[row, find_category(number)] += 1
    return RatedUnits(
        counts=counts,
        raters=np.array([len(numbers) for numbers in values], dtype=np.float64),
        total=np.array([sum(numbers) for numbers in values], dtype=np.float64),
        squares=np.array([sum(number * number for number in numbers) for numbers in values], dtype=np.float64),
        category_values=categories.values,
        labels=categories.labels,
    )


def distinct_units(units: RatedUnits) -> tuple[RatedUnits, Indices]:
    """Distinct units, and the position of each unit among them.

    Thousands of items on a short scale have a few dozen distinct units."""
    rows = np.column_stack([units.counts, units.raters, units.total, units.squares])
    unique_rows, unique_index = np.unique(rows, axis=0, return_inverse=True)
    size = units.counts.shape[1]
    counts, raters, total, squares = (
        unique_rows[:, :size],
        unique_rows[:, size],
        unique_rows[:, size + 1],
        unique_rows[:, size + 2],
    )
    return replace(units, counts=counts, raters=raters, total=total, squares=squares), unique_index.reshape(-1)


def _numeric_value(value: float | str, scale: Scale) -> float:
    """Value as a number; a class label becomes its position."""
    if scale.kind is ScaleKind.CLASS:
        if value not in scale.labels:
            raise ValueError(f"an expert's label {value!r} is not on the scale {scale}")
        return float(scale.labels.index(str(value)))
    if not scale.contains(float(value)):
        raise ValueError(f"an expert's value {value} is not on the scale {scale}")
    return float(value)


def reliability_statistics(
    units: RatedUnits, scale: Scale, names: list[str], weight: Array
) -> dict[str, BatchStatistic]:
    """Compute the named statistics over all raters for every weighting in ``weight``, shape (..., items)."""
    results: dict[str, BatchStatistic] = {}
    if scale.kind in {ScaleKind.REAL, ScaleKind.SECONDS} and "krippendorff_alpha_interval" in names:
        results["krippendorff_alpha_interval"] = interval_alpha_of_reals(
            units.raters, units.total, units.squares, weight
        )
    remaining = [name for name in names if name not in results]
    if remaining:
        table = unit_coincidences(units.counts, weight, units.category_values)
        for name in remaining:
            results[name] = fleiss_kappa(table) if name == "fleiss_kappa" else COINCIDENCE_STATISTICS[name](table)
    return results


def headline_statistic(scale: Scale) -> str:
    """Statistic shown in verdicts and trends.

    Quadratic kappa for levels and yes/no, kappa for classes, Pearson's correlation for continuous values."""
    if scale.kind is ScaleKind.CLASS:
        return "cohen_kappa"
    return "cohen_kappa_quadratic" if scale.levels else "pearson"
