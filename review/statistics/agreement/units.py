"""Items rated by several experts, as the arrays that alpha, AC and Fleiss' kappa read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from evaluation.core.registry import Scale, ScaleKind
from review.statistics.agreement.catalogue import OF_COINCIDENCES
from review.statistics.agreement.kappa import fleiss_kappa, interval_alpha_of_reals, of_units
from review.statistics.agreement.layout import Categories
from review.statistics.agreement.rating import Item
from review.statistics.agreement.statistic import Array, Figures, Indices


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
    values = [[_number(value, scale) for value in ratings.values()] for ratings in items.values()]
    counts = np.zeros((len(values), len(categories.labels)))
    if categories.labels:
        for row, numbers in enumerate(values):
            for number in numbers:
                counts[row, categories.find(number)] += 1
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
