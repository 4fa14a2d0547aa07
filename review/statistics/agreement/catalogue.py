"""The one list of the agreement statistics: what each reads, where it applies; and the units of several raters."""

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
    of_pair,
    of_units,
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
from review.statistics.agreement.statistic import Array, Figures, Indices, Item, Undefined

OF_VALUES: dict[str, Callable[[Pairs], Figures]] = {
    "mae": mae,
    "bias": bias,
    "rmse": rmse,
    "pearson": pearson,
    "spearman": spearman,
    "kendall_tau_b": kendall_tau_b,
}
OF_CONFUSION: dict[str, Callable[[Confusion], Figures]] = {
    "exact": exact,
    "within_one": within_one,
    "cohen_kappa": cohen_kappa,
    "cohen_kappa_linear": cohen_kappa_linear,
    "cohen_kappa_quadratic": cohen_kappa_quadratic,
}
OF_COINCIDENCES: dict[str, Callable[[Coincidences], Figures]] = {
    "krippendorff_alpha_nominal": krippendorff_alpha_nominal,
    "krippendorff_alpha_ordinal": krippendorff_alpha_ordinal,
    "krippendorff_alpha_interval": krippendorff_alpha_interval,
    "gwet_ac1": gwet_ac1,
    "gwet_ac2": gwet_ac2,
}
OF_YES_NO: dict[str, Callable[[Confusion], Figures]] = {
    "tpr": true_positive_rate,
    "tnr": true_negative_rate,
    "precision": precision,
    "recall": true_positive_rate,
    "f1": f1,
    "balanced_accuracy": balanced_accuracy,
}
NAMES = (
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
NOMINAL = frozenset({"exact", "cohen_kappa", "krippendorff_alpha_nominal", "gwet_ac1"})
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


def inapplicable(scale: Scale, binned: bool) -> dict[str, Undefined]:
    """The statistics that do not exist on a scale, with the reason."""
    reasons: dict[str, Undefined] = {}
    if scale.kind is not ScaleKind.YES_NO:
        reasons |= dict.fromkeys(OF_YES_NO, Undefined.YES_NO_ONLY)
    if scale.kind is ScaleKind.CLASS:
        reasons |= {name: Undefined.CLASSES_HAVE_NO_ORDER for name in NAMES if name not in NOMINAL | set(OF_YES_NO)}
    if scale.kind in {ScaleKind.REAL, ScaleKind.SECONDS} and not binned:
        by_level = (one for one in (*OF_CONFUSION, *OF_COINCIDENCES) if one != "krippendorff_alpha_interval")
        reasons |= dict.fromkeys(by_level, Undefined.NEEDS_BINNING)
    return reasons


def figures(layout: Layout, scale: Scale, names: list[str], weight: Array) -> dict[str, Figures]:
    """The named statistics for every weighting of the batch ``weight``, shape (..., distinct pairs)."""
    pairs = layout.pairs(weight)
    found = {name: OF_VALUES[name](pairs) for name in names if name in OF_VALUES}
    real = scale.kind in {ScaleKind.REAL, ScaleKind.SECONDS}
    if real and "krippendorff_alpha_interval" in names:
        found["krippendorff_alpha_interval"] = _interval_alpha(pairs)
    by_category = [name for name in names if name not in found]
    if by_category:
        table = layout.confusion(weight)
        both = of_pair(table)
        for name in by_category:
            if name in OF_COINCIDENCES:
                found[name] = OF_COINCIDENCES[name](both)
            else:
                found[name] = (OF_CONFUSION.get(name) or OF_YES_NO[name])(table)
    return found


def _interval_alpha(pairs: Pairs) -> Figures:
    two = np.full(len(pairs.judge), 2.0)
    squares = np.square(pairs.judge) + np.square(pairs.expert)
    return interval_alpha_of_reals(two, pairs.judge + pairs.expert, squares, pairs.weight)


def undefined_reason(name: str, pairs: Pairs) -> Undefined:
    """Why a statistic that exists on the scale is undefined for these pairs (batch of one)."""
    if not (pairs.weight > 0).any():
        return Undefined.NO_PAIRS
    if name in CORRELATIONS:
        return pairs.reason()
    return _YES_NO_REASONS.get(name, Undefined.ONE_VALUE_ONLY)


@dataclass(frozen=True, slots=True)
class Units:
    """Per item: how many raters gave each category, how many ratings there are, their sum and sum of squares."""

    counts: Array
    raters: Array
    total: Array
    squares: Array
    category_values: Array
    labels: tuple[str | float, ...]


def units(items: Mapping[Item, Mapping[str, float | str]], scale: Scale, bins: tuple[float, ...]) -> Units:
    """The units of all items, in order.

    :raises ValueError: for a value off the scale.
    """
    categories = Categories(scale, bins)
    number_of, find = cache(partial(_number, scale=scale)), cache(categories.find)  # few different values, many items
    values = [[number_of(value) for value in ratings.values()] for ratings in items.values()]
    counts = np.zeros((len(values), len(categories.labels)))
    if categories.labels:
        for row, numbers in enumerate(values):
            for number in numbers:
                counts[row, find(number)] += 1
    return Units(
        counts=counts,
        raters=np.array([len(numbers) for numbers in values], dtype=np.float64),
        total=np.array([sum(numbers) for numbers in values], dtype=np.float64),
        squares=np.array([sum(number * number for number in numbers) for numbers in values], dtype=np.float64),
        category_values=categories.values,
        labels=categories.labels,
    )


def distinct(found: Units) -> tuple[Units, Indices]:
    """The units without repetition, and which of them each unit is: thousands of items rated on a short scale are a
    few dozen different ones."""
    rows = np.column_stack([found.counts, found.raters, found.total, found.squares])
    kinds, place = np.unique(rows, axis=0, return_inverse=True)
    size = found.counts.shape[1]
    counts, raters, total, squares = kinds[:, :size], kinds[:, size], kinds[:, size + 1], kinds[:, size + 2]
    return replace(found, counts=counts, raters=raters, total=total, squares=squares), place.reshape(-1)


def _number(value: float | str, scale: Scale) -> float:
    """The value as a number, a class as its position."""
    if scale.kind is ScaleKind.CLASS:
        if value not in scale.labels:
            raise ValueError(f"an expert's label {value!r} is not on the scale {scale}")
        return float(scale.labels.index(str(value)))
    if not scale.holds(float(value)):
        raise ValueError(f"an expert's value {value} is not on the scale {scale}")
    return float(value)


def reliability(found: Units, scale: Scale, names: list[str], weight: Array) -> dict[str, Figures]:
    """The named statistics over all raters for every weighting of the batch ``weight``, shape (..., items)."""
    results: dict[str, Figures] = {}
    if scale.kind in {ScaleKind.REAL, ScaleKind.SECONDS} and "krippendorff_alpha_interval" in names:
        results["krippendorff_alpha_interval"] = interval_alpha_of_reals(
            found.raters, found.total, found.squares, weight
        )
    rest = [name for name in names if name not in results]
    if rest:
        table = of_units(found.counts, weight, found.category_values)
        for name in rest:
            results[name] = fleiss_kappa(table) if name == "fleiss_kappa" else OF_COINCIDENCES[name](table)
    return results


def headline_statistic(scale: Scale) -> str:
    """The one figure that a verdict or a line over time shows: quadratic kappa of levels and yes/no, kappa of classes,
    Pearson's correlation of continuous values."""
    if scale.kind is ScaleKind.CLASS:
        return "cohen_kappa"
    return "cohen_kappa_quadratic" if scale.levels else "pearson"
