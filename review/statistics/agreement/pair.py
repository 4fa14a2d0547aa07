"""Comparison of one judge with the experts: agreement statistics, best constant guess and reliability curve."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from evaluation.core.scales import Scale, ScaleKind
from review.statistics.agreement.bootstrap import FEW_GROUPS, Interval, Resampling, bootstrap_intervals, build_resampler
from review.statistics.agreement.catalogue import (
    STATISTIC_NAMES,
    batch_statistics,
    inapplicable_statistics,
    undefined_reason,
)
from review.statistics.agreement.layout import Layout, build_layout
from review.statistics.agreement.statistic import Array, Statistic, factorize, rounded_half_up
from review.statistics.student_t import t_quantile

FEW_GROUPS_WARNING = "few_groups"


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement of one judge with the experts on one metric.

    ``excluded`` counts the answers left out, by reason. ``confusion[i][j]`` is the weight of answers with expert label
    ``labels[i]`` and judge label ``labels[j]``, in whole counts if unweighted. It is ``None`` if the scale has no
    categories. ``interval_reasons`` explains why a defined statistic has no interval."""

    n: int
    weighted: bool
    excluded: Mapping[str, int]
    statistics: Mapping[str, Statistic]
    confusion: tuple[tuple[float, ...], ...] | None
    labels: tuple[str | float, ...]
    intervals: Mapping[str, Interval]
    interval_reasons: Mapping[str, str]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Stable JSON form of the ``agreement`` command and REST. Every key is present, null if undefined.

        ``undefined`` holds the reasons, under ``intervals.NAME`` if only the interval is missing."""
        undefined = {name: statistic.reason for name, statistic in self.statistics.items() if statistic.reason}
        undefined |= {f"intervals.{name}": reason for name, reason in self.interval_reasons.items()}
        if self.confusion is None:
            undefined["confusion"] = self.statistics["exact"].reason
        return {
            "n": self.n,
            "excluded": dict(self.excluded),
            **{name: self.statistics[name].value for name in STATISTIC_NAMES},
            "confusion": None if self.confusion is None else [list(row) for row in self.confusion],
            "labels": list(self.labels),
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
            "undefined": undefined,
        }


def compare(
    judge: Sequence[float | str | None],
    expert_means: Sequence[float | str | None],
    scale: Scale,
    weights: Sequence[float] | None = None,
    *,
    resampling: Resampling | None = None,
    only: Collection[str] = STATISTIC_NAMES,
    bins: Sequence[float] = (),
) -> PairAgreement:
    """Compare a judge with the experts' consensus, answer by answer (the sequences are aligned).

    Correlations, MAE, bias and RMSE use unrounded values. The other statistics use values rounded half up to the
    declared scale. Expert ties on yes/no (a mean of 0.5) and classes (``None``) are counted and left out of all
    statistics, so that all of them share one ``n``.

    Continuous scales need ``bins`` (edges in rising order) for statistics by level. ``weights`` are 1 / (probability x
    response rate); without them every answer counts once. Only the statistics in ``only`` get an interval.

    :raises ValueError: for an expert's value off the scale, unequal lengths, or weights that are not positive."""
    if any(low >= high for low, high in pairwise(bins)) or len(bins) == 1:
        raise ValueError("bins are at least two edges in rising order")
    layout = build_layout(judge, expert_means, scale, weights, bins)
    statistics = _point_statistics(layout, scale, bool(bins))
    intervals: dict[str, Interval] = {}
    reasons: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    points = {
        name: statistic.value for name, statistic in statistics.items() if statistic.value is not None and name in only
    }
    if resampling is not None and points:
        item_resampler = build_resampler(len(judge), resampling, layout.positions)
        intervals, missing_reasons = bootstrap_intervals(layout, scale, points, item_resampler, resampling)
        reasons = {name: str(reason) for name, reason in missing_reasons.items()}
        warnings = (FEW_GROUPS_WARNING,) if item_resampler.groups < FEW_GROUPS else ()
    return PairAgreement(
        n=len(layout.positions),
        weighted=weights is not None,
        excluded=layout.excluded,
        statistics=statistics,
        confusion=_confusion(layout, weights is not None),
        labels=layout.labels,
        intervals=intervals,
        interval_reasons=reasons,
        warnings=warnings,
    )


def _point_statistics(layout: Layout, scale: Scale, binned: bool) -> dict[str, Statistic]:
    inapplicable_reasons = inapplicable_statistics(scale, binned)
    weight = layout.weight
    results = batch_statistics(
        layout, scale, [name for name in STATISTIC_NAMES if name not in inapplicable_reasons], weight
    )
    pairs = layout.pairs(weight)
    statistics = {name: Statistic(None, str(reason)) for name, reason in inapplicable_reasons.items()}
    statistics |= {name: result.to_statistic(undefined_reason(name, pairs)) for name, result in results.items()}
    return statistics


def _confusion(layout: Layout, weighted: bool) -> tuple[tuple[float, ...], ...] | None:
    if not layout.labels:
        return None
    cells = layout.confusion(layout.weight).cells.tolist()
    return tuple(tuple(float(cell) if weighted else round(cell) for cell in row) for row in cells)


@dataclass(frozen=True, slots=True)
class ConstantGuess:
    """Constant guess and its agreement with the experts."""

    value: float | str
    agreement: PairAgreement


def best_constant_guess(
    expert_means: Sequence[float | str | None],
    scale: Scale,
    weights: Sequence[float] | None = None,
    bins: Sequence[float] = (),
) -> ConstantGuess | None:
    """Constant answer that agrees best with the experts; ``None`` without an expert's value.

    For levels and classes it has the largest share of exact agreement; of equally good values the lowest is taken. For
    continuous scales it is the median, which has the smallest mean absolute error."""
    candidates: list[float | str]
    if scale.kind is ScaleKind.CLASS:
        candidates = list(scale.labels)
    elif scale.levels:
        candidates = [float(level) for level in scale.levels]
    else:
        candidates = _median(expert_means, weights)
    guesses = [
        ConstantGuess(value, compare([value] * len(expert_means), expert_means, scale, weights, bins=bins))
        for value in candidates
    ]
    guesses = [guess for guess in guesses if guess.agreement.n]
    if len(guesses) < 2:
        return guesses[0] if guesses else None
    return max(guesses, key=lambda guess: guess.agreement.statistics["exact"].value or 0.0)


def _median(expert_means: Sequence[float | str | None], weights: Sequence[float] | None) -> list[float | str]:
    """Lower weighted median of the existing values, in a list; empty without any."""
    known = sorted(
        (float(value), 1.0 if weights is None else weights[position])
        for position, value in enumerate(expert_means)
        if value is not None
    )
    if not known:
        return []
    cumulative_weight = np.cumsum([weight for _, weight in known])
    return [known[int(np.searchsorted(cumulative_weight, cumulative_weight[-1] / 2.0))][0]]


# Number of equally filled bins of a continuous scale.
MAX_BINS = 10


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Point of a reliability curve: answers with about the same judge value.

    ``judge`` and ``expert`` are means. ``low`` and ``high`` bound the 95% interval of the expert mean; they are
    ``None`` with too few groups or no variation."""

    judge: float
    expert: float
    low: float | None
    high: float | None
    n: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def reliability_curve(
    judge: Sequence[float | str | None],
    expert_means: Sequence[float | str | None],
    scale: Scale,
    weights: Sequence[float] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> tuple[CurvePoint, ...]:
    """Points of the reliability curve, by rising judge value.

    There is one point for each level the judge gave; continuous scales have up to ten equally filled bins. A judge
    whose scores equal the experts' means lies on the diagonal. Classes have no order and no curve.

    Intervals are of the weighted mean, cut at the ends of the scale and robust to dependent answers of a group
    (linearised, as for a ratio: W. G. Cochran, 1977, Sampling Techniques, 6.4), with t of groups - 1 degrees of
    freedom."""
    if scale.kind is ScaleKind.CLASS:
        return ()
    comparable = [
        position
        for position, (judge_value, expert_value) in enumerate(zip(judge, expert_means, strict=True))
        if judge_value is not None and expert_value is not None and scale.contains_mean(float(judge_value))
    ]
    judge_values, expert_values = (
        np.array([float(side[position] or 0.0) for position in comparable]) for side in (judge, expert_means)
    )
    weight = np.array([1.0 if weights is None else weights[position] for position in comparable])
    group_of_answer = [position if groups is None else groups[position] for position in comparable]
    bin_of_answer = _bin_keys(judge_values, scale)
    return tuple(
        _curve_point(judge_values, expert_values, weight, group_of_answer, scale, bin_of_answer == bin_key)
        for bin_key in np.unique(bin_of_answer)
    )


def _bin_keys(values: Array, scale: Scale) -> Array:
    """Nearest level of each value; for continuous scales the number of its equally filled bin."""
    if scale.levels:
        distinct_values, position = np.unique(values, return_inverse=True)
        return np.array([float(rounded_half_up(value)) for value in distinct_values])[position]
    if len(values) == 0:
        return values
    count = min(MAX_BINS, max(1, len(values) // 5))
    edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, count + 1)[1:-1]))
    return np.searchsorted(edges, values, side="right").astype(np.float64)


def _curve_point(
    judge_values: Array,
    expert_values: Array,
    weight: Array,
    group_of_answer: Sequence[Hashable],
    scale: Scale,
    in_bin: np.ndarray,
) -> CurvePoint:
    share = weight[in_bin] / weight[in_bin].sum()
    mean = float(share @ expert_values[in_bin])
    group_index = factorize(group_of_answer[position] for position in np.flatnonzero(in_bin).tolist())
    group_count = int(group_index.max()) + 1
    low = high = None
    if group_count > 1:
        group_deviations = np.bincount(
            group_index, weights=share * (expert_values[in_bin] - mean), minlength=group_count
        )
        error = math.sqrt(group_count / (group_count - 1) * float(np.square(group_deviations).sum()))
        if error > 1e-12:
            half_width = t_quantile(0.975, group_count - 1) * error
            low, high = max(scale.low, mean - half_width), min(scale.high, mean + half_width)
    return CurvePoint(float(share @ judge_values[in_bin]), mean, low, high, int(in_bin.sum()))


# Steps along each side of a continuous scale.
GRID_STEPS = 20


def scatter_points(
    judge: Sequence[float | str | None], expert_means: Sequence[float | str | None], scale: Scale
) -> tuple[tuple[float, float, int], ...]:
    """Points ``(expert, judge, answers)`` of a scatter plot, in order.

    Means are rounded to a quarter of a level, continuous values to a twentieth of the scale. Answers without either
    value are left out. Classes have no points."""
    if scale.kind is ScaleKind.CLASS:
        return ()
    step = 0.25 if scale.levels else scale.width / GRID_STEPS
    counts: Counter[tuple[float, float]] = Counter()
    for (judge_value, expert_value), count in Counter(zip(judge, expert_means, strict=True)).items():
        if judge_value is not None and expert_value is not None and scale.contains_mean(float(judge_value)):
            counts[
                _round_to_step(float(expert_value), scale, step), _round_to_step(float(judge_value), scale, step)
            ] += count
    return tuple((expert, judged, count) for (expert, judged), count in sorted(counts.items()))


def _round_to_step(value: float, scale: Scale, step: float) -> float:
    return scale.low + round((value - scale.low) / step) * step
