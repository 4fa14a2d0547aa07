"""Intervals of means over several comparisons of the same items, such as the mean kappa of all pairs of experts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.core.scales import Scale
from review.agreement.bootstrap import Resampler, Resampling, resampled_weights
from review.agreement.catalogue import figures
from review.agreement.intervals import Interval, intervals_of, joined
from review.agreement.layout import Layout
from review.agreement.statistic import Array, Figures, Undefined, ratio


def joint_intervals(
    layouts: Sequence[Layout], scale: Scale, names: list[str], plan: Resampler, resampling: Resampling
) -> tuple[dict[str, Interval], dict[str, Undefined]]:
    """The interval of each statistic's mean over the comparisons, weighted by their items, and the reason where there
    is none. ``plan`` is of all items that ``layouts`` were laid out from: a resample takes the same items everywhere.
    """
    if plan.groups < 2:
        return {}, dict.fromkeys(names, Undefined.TOO_FEW_GROUPS)
    return intervals_of(_means(layouts, scale, names, plan, resampling), resampling.confidence)


def _means(
    layouts: Sequence[Layout], scale: Scale, names: list[str], plan: Resampler, resampling: Resampling
) -> dict[str, Figures]:
    """Every statistic's mean in each resample. All comparisons are resampled as one long list of cells."""
    starts = np.cumsum([0, *(len(one.judge) for one in layouts)])
    together = Resampler(np.concatenate([plan.group[one.kept] for one in layouts]), plan.stratum)
    weight = np.concatenate([one.item_weight for one in layouts])
    cell = np.concatenate([one.cell + start for one, start in zip(layouts, starts, strict=False)])
    widest = max(len(one.category_values) for one in layouts) ** 2
    batches: dict[str, list[Figures]] = {name: [] for name in names}
    for drawn in resampled_weights(together, weight, cell, int(starts[-1]), resampling, widest):
        found = [
            (len(one.kept), figures(one, scale, names, drawn[:, start : start + len(one.judge)]))
            for one, start in zip(layouts, starts, strict=False)
        ]
        for name in names:
            batches[name].append(_mean([(size, of[name]) for size, of in found]))
    return {name: joined(of) for name, of in batches.items()}


def _mean(parts: Sequence[tuple[int, Figures]]) -> Figures:
    """The mean of the comparisons where the statistic is defined, weighted by their items."""
    total: Array = np.sum([size * one.values * one.defined for size, one in parts], axis=0)
    return ratio(total, np.sum([size * one.defined for size, one in parts], axis=0))
