"""One judge against the experts: every agreement statistic, with intervals on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from evaluation.core.registry import Scale
from review.statistics.agreement.bootstrap import FEW_GROUPS, Resampling, resampler
from review.statistics.agreement.catalogue import NAMES, figures, inapplicable, undefined_reason
from review.statistics.agreement.intervals import Interval, bootstrap_intervals
from review.statistics.agreement.layout import Layout, lay_out
from review.statistics.agreement.statistic import Statistic

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
    bins: Sequence[float] = (),
) -> PairAgreement:
    """Compare a judge with the experts' consensus, answer by answer (the sequences are aligned).

    Correlations, MAE, bias and RMSE read the unrounded values; the others the value rounded to the declared scale,
    halves up. Ties of the experts on yes/no (a mean of 0.5) and classes (``None``) are left out of everything and
    counted, so that all statistics share one ``n``. Reals have level statistics only with ``bins``, the edges in
    rising order. ``weights`` are 1 / (probability x response rate); without them every answer counts once.

    :raises ValueError: for an expert's value off the scale, unequal lengths, or weights that are not positive.
    """
    if any(low >= high for low, high in pairwise(bins)) or len(bins) == 1:
        raise ValueError("bins are at least two edges in rising order")
    layout = lay_out(judge, expert_means, scale, weights, bins)
    statistics = _point_statistics(layout, scale, bool(bins))
    intervals: dict[str, Interval] = {}
    reasons: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    points = {name: found.value for name, found in statistics.items() if found.value is not None}
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
