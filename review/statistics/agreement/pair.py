"""One judge against the experts: every agreement statistic, the best constant guess, the reliability curve."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from evaluation.core.scales import Scale, ScaleKind
from review.statistics.agreement.bootstrap import FEW_GROUPS, Interval, Resampling, bootstrap_intervals, resampler
from review.statistics.agreement.catalogue import NAMES, figures, inapplicable, undefined_reason
from review.statistics.agreement.layout import Layout, lay_out
from review.statistics.agreement.statistic import Array, Statistic, numbered, rounded_half_up

FEW_GROUPS_WARNING = "few_groups"


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement of one judge with the experts on one metric.

    ``excluded`` counts the answers left out, by reason. ``confusion[i][j]`` is the weight of answers where the
    experts gave ``labels[i]`` and the judge ``labels[j]``, whole counts where unweighted; ``None`` where the scale
    has no categories. ``interval_reasons`` says why a statistic that has a value has no interval.
    """

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
        """The stable form of the ``agreement`` command and REST: every key always present, null where undefined,
        with the reason under ``undefined`` (``intervals.NAME`` where only the interval is missing)."""
        undefined = {name: found.reason for name, found in self.statistics.items() if found.reason}
        undefined |= {f"intervals.{name}": reason for name, reason in self.interval_reasons.items()}
        if self.confusion is None:
            undefined["confusion"] = self.statistics["exact"].reason
        return {
            "n": self.n,
            "excluded": dict(self.excluded),
            **{name: self.statistics[name].value for name in NAMES},
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
    only: Collection[str] = NAMES,
    bins: Sequence[float] = (),
) -> PairAgreement:
    """Compare a judge with the experts' consensus, answer by answer (the sequences are aligned).

    Correlations, MAE, bias and RMSE read the unrounded values; the others the value rounded to the declared scale,
    halves up. Ties of the experts on yes/no (a mean of 0.5) and classes (``None``) are left out of everything and
    counted, so that all statistics share one ``n``. Reals have level statistics only with ``bins``, the edges in
    rising order. ``weights`` are 1 / (probability x response rate); without them every answer counts once. ``only`` the
    statistics named get an interval.

    :raises ValueError: for an expert's value off the scale, unequal lengths, or weights that are not positive.
    """
    if any(low >= high for low, high in pairwise(bins)) or len(bins) == 1:
        raise ValueError("bins are at least two edges in rising order")
    layout = lay_out(judge, expert_means, scale, weights, bins)
    statistics = _point_statistics(layout, scale, bool(bins))
    intervals: dict[str, Interval] = {}
    reasons: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    points = {name: found.value for name, found in statistics.items() if found.value is not None and name in only}
    if resampling is not None and points:
        drawn = resampler(len(judge), resampling, layout.kept)
        intervals, missing = bootstrap_intervals(layout, scale, points, drawn, resampling)
        reasons = {name: str(reason) for name, reason in missing.items()}
        warnings = (FEW_GROUPS_WARNING,) if drawn.groups < FEW_GROUPS else ()
    return PairAgreement(
        n=len(layout.kept),
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
    barred = inapplicable(scale, binned)
    weight = layout.weight
    found = figures(layout, scale, [name for name in NAMES if name not in barred], weight)
    pairs = layout.pairs(weight)
    statistics = {name: Statistic(None, str(reason)) for name, reason in barred.items()}
    statistics |= {name: one.single(undefined_reason(name, pairs)) for name, one in found.items()}
    return statistics


def _confusion(layout: Layout, weighted: bool) -> tuple[tuple[float, ...], ...] | None:
    if not layout.labels:
        return None
    cells = layout.confusion(layout.weight).cells.tolist()
    return tuple(tuple(float(cell) if weighted else round(cell) for cell in row) for row in cells)


@dataclass(frozen=True, slots=True)
class ConstantGuess:
    """The guess, and how it agrees with the experts."""

    value: float | str
    agreement: PairAgreement


def best_constant_guess(
    expert_means: Sequence[float | str | None],
    scale: Scale,
    weights: Sequence[float] | None = None,
    bins: Sequence[float] = (),
) -> ConstantGuess | None:
    """The level or class with the largest share of exact agreement (the lowest of equally good ones); for reals the
    median, which has the smallest mean absolute error. ``None`` without any expert's value."""
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
    """The lower weighted median of the values that exist, if any does."""
    known = sorted(
        (float(value), 1.0 if weights is None else weights[at])
        for at, value in enumerate(expert_means)
        if value is not None
    )
    if not known:
        return []
    passed = np.cumsum([weight for _, weight in known])
    return [known[int(np.searchsorted(passed, passed[-1] / 2.0))][0]]


MOST_BINS = 10  # of a continuous scale, equally filled


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Answers to which the judge gave about the same: its mean value there and the experts', with a 95% interval of
    the latter; ``low`` and ``high`` are ``None`` where too few groups of answers, or no variation, allow none."""

    judge: float
    expert: float
    low: float | None
    high: float | None
    n: int

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return asdict(self)


def reliability_curve(
    judge: Sequence[float | str | None],
    expert_means: Sequence[float | str | None],
    scale: Scale,
    weights: Sequence[float] | None = None,
    groups: Sequence[Hashable] | None = None,
) -> tuple[CurvePoint, ...]:
    """One point for each level the judge gave, for reals for each of up to ten equally filled bins; from left to right.

    A judge whose scores mean what the experts' mean lies on the diagonal. Intervals are of the weighted mean, robust
    to answers that belong together (linearised, as for a ratio: W. G. Cochran, 1977, Sampling Techniques, 6.4), with
    t of groups - 1 degrees of freedom, and end with the scale. Classes have no order and no curve.
    """
    if scale.kind is ScaleKind.CLASS:
        return ()
    kept = [
        at
        for at, (ours, theirs) in enumerate(zip(judge, expert_means, strict=True))
        if ours is not None and theirs is not None and scale.holds_mean(float(ours))
    ]
    ours, theirs = (np.array([float(side[at] or 0.0) for at in kept]) for side in (judge, expert_means))
    weight = np.array([1.0 if weights is None else weights[at] for at in kept])
    group = [at if groups is None else groups[at] for at in kept]
    bins = _bins(ours, scale)
    return tuple(_point(ours, theirs, weight, group, scale, bins == one) for one in np.unique(bins))


def _bins(values: Array, scale: Scale) -> Array:
    """The level next to each value; for reals the equally filled bin it falls into."""
    if scale.levels:
        different, place = np.unique(values, return_inverse=True)
        return np.array([float(rounded_half_up(value)) for value in different])[place]
    if len(values) == 0:
        return values
    count = min(MOST_BINS, max(1, len(values) // 5))
    edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, count + 1)[1:-1]))
    return np.searchsorted(edges, values, side="right").astype(np.float64)


def _point(
    ours: Array, theirs: Array, weight: Array, group: Sequence[Hashable], scale: Scale, chosen: np.ndarray
) -> CurvePoint:
    share = weight[chosen] / weight[chosen].sum()
    mean = float(share @ theirs[chosen])
    place = numbered(group[at] for at in np.flatnonzero(chosen).tolist())
    count = int(place.max()) + 1
    low = high = None
    if count > 1:
        off = np.bincount(place, weights=share * (theirs[chosen] - mean), minlength=count)
        error = math.sqrt(count / (count - 1) * float(np.square(off).sum()))
        if error > 1e-12:
            reach = _t(count - 1) * error
            low, high = max(scale.low, mean - reach), min(scale.high, mean + reach)
    return CurvePoint(float(share @ ours[chosen]), mean, low, high, int(chosen.sum()))


def _t(freedom: int) -> float:
    from scipy.special import stdtrit  # costs 0.2 s at import

    return float(stdtrit(freedom, 0.975))


PLACES = 20  # steps along each side of a continuous scale


def spread(
    judge: Sequence[float | str | None], expert_means: Sequence[float | str | None], scale: Scale
) -> tuple[tuple[float, float, int], ...]:
    """``(expert, judge, answers)`` of every place that holds an answer, in order. Means stand at the nearest quarter of
    a level, reals at the nearest twentieth of the scale. Answers without either value are left out, classes too."""
    if scale.kind is ScaleKind.CLASS:
        return ()
    step = 0.25 if scale.levels else scale.width / PLACES
    counted: Counter[tuple[float, float]] = Counter()
    for (ours, theirs), count in Counter(zip(judge, expert_means, strict=True)).items():
        if ours is not None and theirs is not None and scale.holds_mean(float(ours)):
            counted[_nearest(float(theirs), scale, step), _nearest(float(ours), scale, step)] += count
    return tuple((expert, judged, count) for (expert, judged), count in sorted(counted.items()))


def _nearest(value: float, scale: Scale, step: float) -> float:
    return scale.low + round((value - scale.low) / step) * step
