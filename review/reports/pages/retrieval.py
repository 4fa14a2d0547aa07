"""The page of a run's retrieval: curves by depth, each with its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext, ngettext

from evaluation.core.metric_specs import Bilingual
from evaluation.messages import numbers
from evaluation.messages.sentences import category_name
from evaluation.metrics.catalogue import rule_metric_named
from evaluation.metrics.depths import CURVES
from evaluation.models import Run
from review.agreement.plots import Twin
from review.agreement.retrieval import Curves, RetrievalByDepth
from review.charts.curves import STYLES, CurveChart, curve_chart

_DEPTHS = (1, 2, 3, 5, 10, 20, 30, 40, 50)  # of the tables


@dataclass(frozen=True, slots=True)
class MetricCurves:
    """A metric as a picture with its table."""

    title: Bilingual
    formula: Bilingual
    chart: CurveChart
    twin: Twin


@dataclass(frozen=True, slots=True)
class RetrievalPage:
    """Everything on the page. ``by`` is ``category`` or ``hops``; ``undrawn`` groups stand in the tables alone."""

    run: Run
    found: RetrievalByDepth
    by: str
    metrics: tuple[MetricCurves, ...]
    undrawn: int
    has_hops: bool


def retrieval_page(run: Run, found: RetrievalByDepth, by: str) -> RetrievalPage:
    """The page; groups of questions from the largest on."""
    groups = found.by_hops if by == "hops" else found.by_category
    shown = sorted(groups, key=lambda one: -one.count) if by == "category" else list(groups)
    lines = [(gettext("all"), found.overall), *((_name(one), one) for one in shown)] if found.overall else []
    if len(shown) == 1:
        lines = lines[:1]  # the only group is all of them
    titled = [(f"{name} (n={one.count})", one) for name, one in lines]
    depths = [k for k in _DEPTHS if k <= found.depth]
    if found.depth not in depths:
        depths.append(found.depth)
    metrics = tuple(_metric(name, titled, depths) for name in CURVES) if titled else ()
    return RetrievalPage(run, found, by, metrics, max(0, len(titled) - STYLES), bool(found.by_hops))


def _name(one: Curves) -> str:
    if one.hops is None:
        return category_name(one.name)
    return ngettext("%(count)d fact", "%(count)d facts", one.hops) % {"count": one.hops}


def _metric(name: str, lines: Sequence[tuple[str, Curves]], depths: Sequence[int]) -> MetricCurves:
    spec = rule_metric_named(name).spec
    rows = tuple((title, tuple(numbers.plain(one.values[name][k - 1], 3) for k in depths)) for title, one in lines)
    twin = Twin(gettext("Means over the questions, by k"), gettext("Questions"), tuple(f"k={k}" for k in depths), rows)
    return MetricCurves(spec.title, spec.formula, curve_chart([(t, one.values[name]) for t, one in lines]), twin)
