"""Intervals of means over several comparisons of the same items, such as the mean kappa of all pairs of experts.

The ceiling: how well an expert agrees with the other experts, and the judge with those same others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.core.registry import Scale
from review.statistics.agreement.bootstrap import Resampler, Resampling, resampled_weights
from review.statistics.agreement.catalogue import NAMES, figures
from review.statistics.agreement.intervals import Interval, intervals_of, joined
from review.statistics.agreement.layout import Layout, lay_out
from review.statistics.agreement.pair import PairAgreement, compare
from review.statistics.agreement.rating import Item, Items, consensus, raters_of, weights_of
from review.statistics.agreement.statistic import Array, Figures, Undefined, ratio


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


AVERAGED = tuple(name for name in NAMES if name != "bias")  # biases of experts among themselves cancel out


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Each expert, and the judge where there is one, against the mean of the other experts, on the same items.
    ``intervals`` are those of the means over the left-out experts, by ``expert`` and ``judge``."""

    experts: Mapping[str, PairAgreement]
    judge: Mapping[str, PairAgreement]
    intervals: Mapping[str, Mapping[str, Interval]]

    def to_dict(self) -> dict[str, Any]:
        """``expert`` and ``judge``: each statistic's mean over the left-out experts, weighted by their items, null
        where it is undefined for all, with ``intervals``; ``raters``: each left-out expert's own comparison."""
        return {
            "expert": self._side("expert", self.experts),
            "judge": self._side("judge", self.judge),
            "raters": {
                rater: {
                    "expert": self.experts[rater].to_dict(),
                    "judge": self.judge[rater].to_dict() if rater in self.judge else None,
                }
                for rater in self.experts
            },
        }

    def _side(self, name: str, found: Mapping[str, PairAgreement]) -> dict[str, Any]:
        ends = self.intervals.get(name, {})
        return {**averaged(list(found.values())), "intervals": {key: list(pair) for key, pair in ends.items()}}


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of the comparison with the others' mean: its values, item by item."""

    agreements: dict[str, PairAgreement]
    layouts: list[Layout]

    def intervals(self, scale: Scale, drawn: Resampler, resampling: Resampling) -> dict[str, Interval]:
        means = averaged(list(self.agreements.values()))
        names = [name for name in AVERAGED if means[name] is not None]
        return joint_intervals(self.layouts, scale, names, drawn, resampling)[0] if names else {}


def averaged(agreements: Sequence[PairAgreement]) -> dict[str, float | int | None]:
    """``n`` (the sum of the comparisons' items) and the item-weighted mean of every statistic that has no direction,
    over the comparisons where it is defined."""
    means: dict[str, float | int | None] = {"n": sum(agreement.n for agreement in agreements)}
    for name in AVERAGED:
        known = [(a.n, value) for a in agreements if (value := a.statistics[name].value) is not None]
        size = sum(n for n, _ in known)
        means[name] = sum(n * value for n, value in known) / size if size else None
    return means


def ceiling(
    items: Items,
    scale: Scale,
    judge: Mapping[Item, float | str] | None = None,
    bins: Sequence[float] = (),
    weights: Mapping[Item, float] | None = None,
    *,
    resampling: Resampling | None = None,
    drawn: Resampler | None = None,
) -> Ceiling:
    """Leave out one expert at a time and compare with the mean (classes: majority) of the others.

    With a ``judge`` only the items it scored count, for the experts too: like with like. Items with a single rating
    are left out. ``drawn`` resamples the items for intervals.
    """
    experts, judged = _Side({}, []), _Side({}, [])
    every = weights_of(items, weights)
    for rater in raters_of(items):
        others = {
            item: consensus([v for r, v in values.items() if r != rater], scale)
            for item, values in items.items()
            if rater in values and len(values) > 1 and (judge is None or item in judge)
        }
        if not others:
            continue
        sides = [(experts, {item: items[item][rater] for item in others})]
        if judge is not None:
            sides.append((judged, {item: judge[item] for item in others}))
        for side, own in sides:
            ours, theirs = list(own.values()), list(others.values())
            side.agreements[rater] = compare(ours, theirs, scale, weights_of(others, weights), bins=bins)
            if drawn is not None:
                full = [own.get(item) for item in items], [others.get(item) for item in items]
                side.layouts.append(lay_out(*full, scale, every, bins))
    intervals: dict[str, Mapping[str, Interval]] = {}
    if drawn is not None and resampling is not None:
        intervals = {
            name: side.intervals(scale, drawn, resampling) for name, side in (("expert", experts), ("judge", judged))
        }
    return Ceiling(experts.agreements, judged.agreements, intervals)
