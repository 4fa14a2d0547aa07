"""Each expert left out in turn: how well he agrees with the others (the ceiling); may the judge replace him?"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evaluation.core.scales import Scale, ScaleKind
from review.statistics.agreement.bootstrap import (
    Interval,
    Resampler,
    Resampling,
    intervals_of,
    joined,
    resampled_weights,
)
from review.statistics.agreement.catalogue import NAMES, figures
from review.statistics.agreement.layout import Layout, lay_out
from review.statistics.agreement.pair import PairAgreement, compare
from review.statistics.agreement.statistic import (
    Array,
    Figures,
    Item,
    Items,
    Rating,
    Undefined,
    by_item,
    consensus,
    numbered,
    raters_of,
    ratio,
    weights_of,
)
from review.statistics.correction.outcome import NO_VARIANCE, clustered_variance, group_freedom


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


LEAST_RATERS = 3
LEAST_ITEMS = 30  # with fewer items of an expert the t-test is not to be trusted; the expert is left out
EXPERT_DISCOUNT = 0.2  # the authors' epsilon for experts: what a judge may be worse and still pay off
FALSE_DISCOVERIES = 0.05
PASSING_RATE = 0.5


@dataclass(frozen=True, slots=True)
class LeftOutExpert:
    """One expert left out: on which share of the items the judge was at least as near to the others as he
    (``judge_wins``), and the reverse; ``p_value`` of the judge being worse by ``epsilon`` or more."""

    items: int
    judge_wins: float
    expert_wins: float
    p_value: float
    rejected: bool


@dataclass(frozen=True, slots=True)
class AlternativeAnnotatorTest:
    """``winning_rate``: share of experts for whom the judge is shown to be a fair replacement; ``passed`` from 0.5
    on. ``advantage``: mean probability that the judge is at least as near to the others as an expert is."""

    experts: Mapping[str, LeftOutExpert]
    winning_rate: float | None
    advantage: float | None
    passed: bool | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        found = asdict(self)
        experts = found.pop("experts")
        return found | {"experts": experts}


def alternative_annotator_test(
    ratings: Sequence[Rating],
    judge: Mapping[Item, float | str],
    scale: Scale,
    epsilon: float = EXPERT_DISCOUNT,
    groups: Mapping[Item, Hashable] | None = None,
) -> AlternativeAnnotatorTest:
    """For each expert j and item, is the judge at least as near to the remaining experts as j is? Nearness is the
    share of equal labels for classes and yes/no, the negative root mean squared difference otherwise.

    Per expert a one-sided paired t-test of ``mean(expert wins - judge wins) < epsilon``, Benjamini-Yekutieli over
    the experts at 5%. Source: N. Calderon, R. Reichart, R. Dror (2025), arXiv 2501.10970. Items of one of ``groups``
    are not independent: the standard error is cluster-robust, with Satterthwaite's degrees of freedom. Needs 3 experts
    with 30 items each that the judge scored and another expert rated; otherwise it says so.
    """
    items = {item: values for item, values in by_item(ratings).items() if item in judge and len(values) > 1}
    wins: dict[str, tuple[list[bool], list[bool]]] = {}
    group: dict[str, list[Hashable]] = {}
    for rater in raters_of(items):
        rated = [item for item, values in items.items() if rater in values]
        pairs = [_contest(items[item], rater, judge[item], scale) for item in rated]
        if len(pairs) >= LEAST_ITEMS:
            wins[rater] = [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
            group[rater] = [item if groups is None else groups[item] for item in rated]
    if len(wins) < LEAST_RATERS:
        return AlternativeAnnotatorTest({}, None, None, None, str(Undefined.TOO_FEW_RATERS))
    p_values = {rater: _p_value(ours, theirs, group[rater], epsilon) for rater, (ours, theirs) in wins.items()}
    rejected = _benjamini_yekutieli(p_values, FALSE_DISCOVERIES)
    experts = {
        rater: LeftOutExpert(
            len(ours), sum(ours) / len(ours), sum(theirs) / len(theirs), p_values[rater], rater in rejected
        )
        for rater, (ours, theirs) in wins.items()
    }
    rate = len(rejected) / len(experts)
    advantage = sum(one.judge_wins for one in experts.values()) / len(experts)
    return AlternativeAnnotatorTest(experts, rate, advantage, rate >= PASSING_RATE, "")


def _contest(values: Mapping[str, float | str], rater: str, judged: float | str, scale: Scale) -> tuple[bool, bool]:
    """Whether the judge is at least as near to the others as the left-out expert, and the reverse."""
    others = [value for name, value in values.items() if name != rater]
    ours, theirs = _nearness(judged, others, scale), _nearness(values[rater], others, scale)
    return ours >= theirs - 1e-12, theirs >= ours - 1e-12


def _nearness(value: float | str, others: Sequence[float | str], scale: Scale) -> float:
    if scale.kind in {ScaleKind.CLASS, ScaleKind.YES_NO}:
        return sum(value == other for other in others) / len(others)
    return -math.sqrt(sum((float(value) - float(other)) ** 2 for other in others) / len(others))


def _p_value(
    judge_wins: Sequence[bool], expert_wins: Sequence[bool], groups: Sequence[Hashable], epsilon: float
) -> float:
    """One-sided p of ``mean(expert - judge) >= epsilon``; 0 or 1 where the difference never varies, and 1 where all
    items are of one group."""
    from scipy.special import stdtr  # costs 0.2 s at import

    lead = np.array(expert_wins, dtype=np.float64) - np.array(judge_wins, dtype=np.float64)
    mean = float(lead.mean())
    variance, sizes = clustered_variance((lead - mean) / len(lead), numbered(groups))
    if len(sizes) < 2:
        return 1.0
    if variance <= NO_VARIANCE:
        return 0.0 if mean < epsilon else 1.0
    return float(stdtr(group_freedom(sizes), (mean - epsilon) / math.sqrt(variance)))


def _benjamini_yekutieli(p_values: Mapping[str, float], rate: float) -> set[str]:
    """The hypotheses rejected with a false discovery rate under any dependence. Source: Y. Benjamini and
    D. Yekutieli (2001), Ann. Stat. 29."""
    ranked = sorted(p_values, key=lambda name: p_values[name])
    penalty = sum(1.0 / rank for rank in range(1, len(ranked) + 1))
    last = max(
        (rank for rank, name in enumerate(ranked, start=1) if p_values[name] <= rank * rate / (len(ranked) * penalty)),
        default=0,
    )
    return set(ranked[:last])
