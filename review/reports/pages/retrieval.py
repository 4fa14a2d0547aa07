"""Retrieval page of a run: curves by depth, each with its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext, ngettext

from evaluation.core.metric_specs import Bilingual
from evaluation.messages import numbers
from evaluation.messages.explanations import category_name
from evaluation.metrics.catalogue import rule_metric_named
from evaluation.metrics.depth_curves import CURVES
from evaluation.models import Run
from review.agreement.plots import PlotTable
from review.agreement.retrieval import DepthCurves, RetrievalByDepth
from review.charts.curves import STYLES, CurveChart, curve_chart

# Depths that tables show.
_DEPTHS = (1, 2, 3, 5, 10, 20, 30, 40, 50)


@dataclass(frozen=True, slots=True)
class MetricCurves:
    title: Bilingual
    formula: Bilingual
    chart: CurveChart
    table: PlotTable


@dataclass(frozen=True, slots=True)
class RetrievalPage:
    """Content of the page. ``by`` is ``category`` or ``hops``. ``undrawn`` groups appear only in tables."""

    run: Run
    by_depth: RetrievalByDepth
    by: str
    metrics: tuple[MetricCurves, ...]
    undrawn: int
    has_hops: bool


def retrieval_page(run: Run, by_depth: RetrievalByDepth, by: str) -> RetrievalPage:
    """Build the page. Categories are ordered by size."""
    groups = by_depth.by_hops if by == "hops" else by_depth.by_category
    sorted_groups = sorted(groups, key=lambda curves: -curves.count) if by == "category" else list(groups)
    lines = (
        [(gettext("all"), by_depth.overall), *((_curves_name(curves), curves) for curves in sorted_groups)]
        if by_depth.overall
        else []
    )
    if len(sorted_groups) == 1:
        # A single group equals all questions.
        lines = lines[:1]
    titled_curves = [(f"{name} (n={curves.count})", curves) for name, curves in lines]
    depths = [k for k in _DEPTHS if k <= by_depth.depth]
    if by_depth.depth not in depths:
        depths.append(by_depth.depth)
    metrics = tuple(_metric_curves(name, titled_curves, depths) for name in CURVES) if titled_curves else ()
    return RetrievalPage(run, by_depth, by, metrics, max(0, len(titled_curves) - STYLES), bool(by_depth.by_hops))


def _curves_name(curves: DepthCurves) -> str:
    if curves.hops is None:
        return category_name(curves.name)
    return ngettext("%(count)d fact", "%(count)d facts", curves.hops) % {"count": curves.hops}


def _metric_curves(name: str, lines: Sequence[tuple[str, DepthCurves]], depths: Sequence[int]) -> MetricCurves:
    spec = rule_metric_named(name).spec
    rows = tuple(
        (title, tuple(numbers.format_number(curves.values[name][k - 1], 3) for k in depths)) for title, curves in lines
    )
    table = PlotTable(
        gettext("Means over questions, by k"), gettext("Questions"), tuple(f"k={k}" for k in depths), rows
    )
    return MetricCurves(spec.title, spec.formula, curve_chart([(t, curves.values[name]) for t, curves in lines]), table)
