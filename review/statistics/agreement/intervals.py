"""Intervals for every statistic of a judge and the experts, from one set of resamples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evaluation.core.registry import Scale
from review.statistics.agreement.bootstrap import (
    CHUNK_CELLS,
    Resampler,
    Resampling,
    bca_interval,
    folded,
    percentile_interval,
    resampled_weights,
)
from review.statistics.agreement.catalogue import PROPORTIONS, figures
from review.statistics.agreement.clopper_pearson import clopper_pearson
from review.statistics.agreement.layout import Layout
from review.statistics.agreement.statistic import Array, Figures, Undefined

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
