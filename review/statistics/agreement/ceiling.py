"""Leave-one-expert-out comparisons: the agreement that experts reach themselves, and the alternative-annotator test."""

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
    concatenate_batches,
    percentile_intervals,
    resampled_weights,
)
from review.statistics.agreement.catalogue import STATISTIC_NAMES, batch_statistics
from review.statistics.agreement.layout import Layout, build_layout
from review.statistics.agreement.pair import PairAgreement, compare
from review.statistics.agreement.statistic import (
    Array,
    BatchStatistic,
    Item,
    Items,
    Rating,
    Undefined,
    consensus,
    factorize,
    group_by_item,
    item_weights,
    rater_names,
    ratio,
)
from review.statistics.correction.outcome import NO_VARIANCE, clustered_variance, group_freedom


def joint_intervals(
    layouts: Sequence[Layout], scale: Scale, names: list[str], resampler: Resampler, resampling: Resampling
) -> tuple[dict[str, Interval], dict[str, Undefined]]:
    """Interval of each statistic's mean over the comparisons, weighted by items, and the reason for each without one.

    ``resampler`` covers all items that ``layouts`` were built from, so each resample takes the same items everywhere.
    """
    if resampler.groups < 2:
        return {}, dict.fromkeys(names, Undefined.TOO_FEW_GROUPS)
    return percentile_intervals(_resampled_means(layouts, scale, names, resampler, resampling), resampling.confidence)


def _resampled_means(
    layouts: Sequence[Layout], scale: Scale, names: list[str], resampler: Resampler, resampling: Resampling
) -> dict[str, BatchStatistic]:
    """Mean of every statistic in each resample. All comparisons are resampled as one list of cells."""
    starts = np.cumsum([0, *(len(layout.judge) for layout in layouts)])
    combined = Resampler(np.concatenate([resampler.group[layout.positions] for layout in layouts]), resampler.stratum)
    weight = np.concatenate([layout.item_weight for layout in layouts])
    cell = np.concatenate([layout.cell + start for layout, start in zip(layouts, starts, strict=False)])
    largest_array = max(len(layout.category_values) for layout in layouts) ** 2
    batches: dict[str, list[BatchStatistic]] = {name: [] for name in names}
    for weights in resampled_weights(combined, weight, cell, int(starts[-1]), resampling, largest_array):
        by_layout = [
            (
                len(layout.positions),
                batch_statistics(layout, scale, names, weights[:, start : start + len(layout.judge)]),
            )
            for layout, start in zip(layouts, starts, strict=False)
        ]
        for name in names:
            batches[name].append(
                _weighted_mean([(size, statistics_by_name[name]) for size, statistics_by_name in by_layout])
            )
    return {name: concatenate_batches(statistic_batches) for name, statistic_batches in batches.items()}


def _weighted_mean(comparisons: Sequence[tuple[int, BatchStatistic]]) -> BatchStatistic:
    """Mean of the comparisons with a defined statistic, weighted by their items."""
    total: Array = np.sum([size * statistic.values * statistic.defined for size, statistic in comparisons], axis=0)
    return ratio(total, np.sum([size * statistic.defined for size, statistic in comparisons], axis=0))


# Biases of experts among themselves cancel out.
AVERAGED_STATISTICS = tuple(name for name in STATISTIC_NAMES if name != "bias")


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Agreement of each expert, and of the judge, with the mean of the other experts on the same items.

    ``intervals`` holds the intervals of the means over the left-out experts, under ``expert`` and ``judge``."""

    experts: Mapping[str, PairAgreement]
    judge: Mapping[str, PairAgreement]
    intervals: Mapping[str, Mapping[str, Interval]]

    def to_dict(self) -> dict[str, Any]:
        """JSON form with ``expert``, ``judge`` and ``raters``.

        The first two hold each statistic's mean over the left-out experts, weighted by items, null if undefined for
        all, and ``intervals``. ``raters`` holds the comparison of each left-out expert."""
        return {
            "expert": self._side_dict("expert", self.experts),
            "judge": self._side_dict("judge", self.judge),
            "raters": {
                rater: {
                    "expert": self.experts[rater].to_dict(),
                    "judge": self.judge[rater].to_dict() if rater in self.judge else None,
                }
                for rater in self.experts
            },
        }

    def _side_dict(self, name: str, comparisons: Mapping[str, PairAgreement]) -> dict[str, Any]:
        ends = self.intervals.get(name, {})
        return {
            **averaged_statistics(list(comparisons.values())),
            "intervals": {key: list(pair) for key, pair in ends.items()},
        }


@dataclass(frozen=True, slots=True)
class _CeilingSide:
    """Comparisons of the experts or of the judge with the mean of the others, by left-out expert."""

    agreements: dict[str, PairAgreement]
    layouts: list[Layout]

    def intervals(self, scale: Scale, resampler: Resampler, resampling: Resampling) -> dict[str, Interval]:
        means = averaged_statistics(list(self.agreements.values()))
        names = [name for name in AVERAGED_STATISTICS if means[name] is not None]
        return joint_intervals(self.layouts, scale, names, resampler, resampling)[0] if names else {}


def averaged_statistics(agreements: Sequence[PairAgreement]) -> dict[str, float | int | None]:
    """Mean of every statistic without direction, weighted by items, over the comparisons in which it is defined.

    ``n`` is the sum of the comparisons' items."""
    means: dict[str, float | int | None] = {"n": sum(agreement.n for agreement in agreements)}
    for name in AVERAGED_STATISTICS:
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
    resampler: Resampler | None = None,
) -> Ceiling:
    """Leave out one expert at a time and compare with the mean (classes: majority) of the others.

    With a ``judge``, experts too are compared only on the items it scored. Items with a single rating are left out.
    ``resampler`` resamples the items for intervals."""
    expert_side, judge_side = _CeilingSide({}, []), _CeilingSide({}, [])
    all_weights = item_weights(items, weights)
    for rater in rater_names(items):
        other_experts = {
            item: consensus([v for r, v in values.items() if r != rater], scale)
            for item, values in items.items()
            if rater in values and len(values) > 1 and (judge is None or item in judge)
        }
        if not other_experts:
            continue
        sides = [(expert_side, {item: items[item][rater] for item in other_experts})]
        if judge is not None:
            sides.append((judge_side, {item: judge[item] for item in other_experts}))
        for side, own_values in sides:
            side_values, other_values = list(own_values.values()), list(other_experts.values())
            side.agreements[rater] = compare(
                side_values, other_values, scale, item_weights(other_experts, weights), bins=bins
            )
            if resampler is not None:
                aligned = [own_values.get(item) for item in items], [other_experts.get(item) for item in items]
                side.layouts.append(build_layout(*aligned, scale, all_weights, bins))
    intervals: dict[str, Mapping[str, Interval]] = {}
    if resampler is not None and resampling is not None:
        intervals = {
            name: side.intervals(scale, resampler, resampling)
            for name, side in (("expert", expert_side), ("judge", judge_side))
        }
    return Ceiling(expert_side.agreements, judge_side.agreements, intervals)


MIN_RATERS = 3
# The t-test is unreliable with fewer items; such an expert is left out.
MIN_ITEMS = 30
# The authors' epsilon for experts: how much worse a judge may be and still be worth its lower cost.
EXPERT_DISCOUNT = 0.2
FALSE_DISCOVERY_RATE = 0.05
MIN_WINNING_RATE = 0.5


@dataclass(frozen=True, slots=True)
class LeftOutExpert:
    """Comparison of the judge with one left-out expert.

    ``judge_wins`` is the share of items on which the judge is at least as near to the other experts as this expert is;
    ``expert_wins`` is the reverse. ``p_value`` tests the hypothesis that the judge is worse by ``epsilon`` or more."""

    items: int
    judge_wins: float
    expert_wins: float
    p_value: float
    rejected: bool


@dataclass(frozen=True, slots=True)
class AlternativeAnnotatorTest:
    """Result of the alternative-annotator test.

    ``winning_rate`` is the share of experts whom the judge is shown to replace; ``passed`` means 0.5 or more.
    ``advantage`` is the mean probability that the judge is at least as near to the others as an expert is."""

    experts: Mapping[str, LeftOutExpert]
    winning_rate: float | None
    advantage: float | None
    passed: bool | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        fields = asdict(self)
        experts = fields.pop("experts")
        return fields | {"experts": experts}


def alternative_annotator_test(
    ratings: Sequence[Rating],
    judge: Mapping[Item, float | str],
    scale: Scale,
    epsilon: float = EXPERT_DISCOUNT,
    groups: Mapping[Item, Hashable] | None = None,
) -> AlternativeAnnotatorTest:
    """Test whether the judge could replace an expert.

    For each expert and item, the judge wins if it is at least as near to the remaining experts. Nearness is the share
    of equal labels for classes and yes/no, otherwise the negative root mean squared difference.

    Each expert gets a one-sided paired t-test of ``mean(expert wins - judge wins) < epsilon``, with Benjamini-Yekutieli
    correction over the experts at 5%. Items of one group are not independent: the standard error is cluster-robust,
    with Satterthwaite's degrees of freedom. Source: N. Calderon, R. Reichart, R. Dror (2025), arXiv 2501.10970.

    Undefined, with a reason, without 3 experts who each have 30 items that the judge scored and another expert rated.
    """
    items = {item: values for item, values in group_by_item(ratings).items() if item in judge and len(values) > 1}
    wins: dict[str, tuple[list[bool], list[bool]]] = {}
    group: dict[str, list[Hashable]] = {}
    for rater in rater_names(items):
        rated = [item for item, values in items.items() if rater in values]
        pairs = [_nearness_wins(items[item], rater, judge[item], scale) for item in rated]
        if len(pairs) >= MIN_ITEMS:
            wins[rater] = [judge_wins for judge_wins, _ in pairs], [expert_wins for _, expert_wins in pairs]
            group[rater] = [item if groups is None else groups[item] for item in rated]
    if len(wins) < MIN_RATERS:
        return AlternativeAnnotatorTest({}, None, None, None, str(Undefined.TOO_FEW_RATERS))
    p_values = {
        rater: _p_value(judge_wins, expert_wins, group[rater], epsilon)
        for rater, (judge_wins, expert_wins) in wins.items()
    }
    rejected = _benjamini_yekutieli(p_values, FALSE_DISCOVERY_RATE)
    experts = {
        rater: LeftOutExpert(
            len(judge_wins),
            sum(judge_wins) / len(judge_wins),
            sum(expert_wins) / len(expert_wins),
            p_values[rater],
            rater in rejected,
        )
        for rater, (judge_wins, expert_wins) in wins.items()
    }
    rate = len(rejected) / len(experts)
    advantage = sum(expert.judge_wins for expert in experts.values()) / len(experts)
    return AlternativeAnnotatorTest(experts, rate, advantage, rate >= MIN_WINNING_RATE, "")


def _nearness_wins(
    values: Mapping[str, float | str], rater: str, judge_value: float | str, scale: Scale
) -> tuple[bool, bool]:
    """Return whether the judge is at least as near to the others as the left-out expert, and the reverse."""
    other_values = [value for name, value in values.items() if name != rater]
    judge_nearness, expert_nearness = (
        _nearness(judge_value, other_values, scale),
        _nearness(values[rater], other_values, scale),
    )
    return judge_nearness >= expert_nearness - 1e-12, expert_nearness >= judge_nearness - 1e-12


def _nearness(value: float | str, other_values: Sequence[float | str], scale: Scale) -> float:
    if scale.kind in {ScaleKind.CLASS, ScaleKind.YES_NO}:
        return sum(value == other_value for other_value in other_values) / len(other_values)
    return -math.sqrt(sum((float(value) - float(other_value)) ** 2 for other_value in other_values) / len(other_values))


def _p_value(
    judge_wins: Sequence[bool], expert_wins: Sequence[bool], groups: Sequence[Hashable], epsilon: float
) -> float:
    """One-sided p-value of the hypothesis ``mean(expert - judge) >= epsilon``.

    It is 0 or 1 if the difference never varies, and 1 if all items lie in one group."""
    # Importing scipy takes 0.2 s.
    from scipy.special import stdtr

    lead = np.array(expert_wins, dtype=np.float64) - np.array(judge_wins, dtype=np.float64)
    mean = float(lead.mean())
    variance, sizes = clustered_variance((lead - mean) / len(lead), factorize(groups))
    if len(sizes) < 2:
        return 1.0
    if variance <= NO_VARIANCE:
        return 0.0 if mean < epsilon else 1.0
    return float(stdtr(group_freedom(sizes), (mean - epsilon) / math.sqrt(variance)))


def _benjamini_yekutieli(p_values: Mapping[str, float], rate: float) -> set[str]:
    """Hypotheses rejected at a false discovery rate, under any dependence.

    Source: Y. Benjamini and D. Yekutieli (2001), Ann. Stat. 29."""
    ranked = sorted(p_values, key=lambda name: p_values[name])
    penalty = sum(1.0 / rank for rank in range(1, len(ranked) + 1))
    last = max(
        (rank for rank, name in enumerate(ranked, start=1) if p_values[name] <= rank * rate / (len(ranked) * penalty)),
        default=0,
    )
    return set(ranked[:last])
