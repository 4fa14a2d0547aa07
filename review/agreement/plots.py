"""Titles of the agreement statistics, and plots of a judge against the experts and over time, each with a data
table."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from django.utils import formats, timezone
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.scales import Scale, ScaleKind
from evaluation.messages import numbers
from evaluation.messages.explanations import category_name, explain_reason
from review.charts.axis import Plane
from review.charts.forest import Difference, Differences, Moment, Timeline, differences, timeline
from review.charts.judge_against_expert import (
    ConfusionGrid,
    JudgeAgainstExpert,
    ReliabilityPlot,
    confusion_grid,
    judge_against_expert,
    reliability_plot,
)
from review.comparisons.trend import Trend, TrendPoint, Trends
from review.statistics.agreement.catalogue import headline_statistic

# name -> (title, meaning), in the order of the page.
STATISTICS: dict[str, tuple[str | Promise, str | Promise]] = {
    "exact": (_("exact agreement"), _("share of answers on which both said the same")),
    "within_one": (_("within one level"), _("share of answers on which they are at most one level apart")),
    "mae": (_("mean distance"), _("how many levels they are apart on average")),
    "bias": (_("bias"), _("mean of judge minus expert; above 0 the judge is generous")),
    "cohen_kappa": (_("Cohen’s κ"), _("exact agreement beyond chance; 1 is perfect, 0 is chance")),
    "cohen_kappa_linear": (_("κ, linear weights"), _("agreement beyond chance; near misses count in part")),
    "cohen_kappa_quadratic": (_("κ, quadratic weights"), _("agreement beyond chance; far misses weigh most")),
    "rmse": (_("root mean square distance"), _("like the mean distance, far misses weighing more")),
    "pearson": (_("Pearson’s r"), _("whether they rise and fall together in a straight line")),
    "spearman": (_("Spearman’s ρ"), _("whether they put the answers into the same order")),
    "kendall_tau_b": (_("Kendall’s τ-b"), _("pairs of answers put into the same order, minus the others")),
    "krippendorff_alpha_nominal": (_("Krippendorff’s α, nominal"), _("reliability; every difference counts the same")),
    "krippendorff_alpha_ordinal": (_("Krippendorff’s α, ordinal"), _("reliability; differences count by rank")),
    "krippendorff_alpha_interval": (_("Krippendorff’s α, interval"), _("reliability; differences count by square")),
    "gwet_ac1": (_("Gwet’s AC1"), _("agreement beyond chance, steady where nearly all is of one level")),
    "gwet_ac2": (_("Gwet’s AC2, quadratic"), _("the same with quadratic weights")),
    "fleiss_kappa": (_("Fleiss’ κ"), _("agreement beyond chance of several people")),
    "tpr": (_("acceptable ones found"), _("of the answers experts accept, the share the judge accepts")),
    "tnr": (_("unacceptable ones found"), _("of the answers experts reject, the share the judge rejects")),
    "precision": (_("precision"), _("of the answers the judge accepts, the share experts accept")),
    "recall": (_("recall"), _("the same as acceptable ones found")),
    "f1": (_("F1"), _("harmonic mean of precision and recall")),
    "balanced_accuracy": (_("balanced accuracy"), _("mean of acceptable and unacceptable ones found")),
}


def first_statistics(scale: Scale) -> tuple[str, ...]:
    """Statistics shown before the others are unfolded."""
    return "exact", "within_one", headline_statistic(scale)


Figures = Mapping[str, Any]


class PlotTable(NamedTuple):
    """Data table of a plot.

    ``row_heading`` is the heading of the first column, ``header`` those of the others. A row is the text of its first
    column and its cells."""

    caption: str
    row_heading: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


class Confusion(NamedTuple):
    """Confusion matrix of experts (rows) and judge (columns); a cell is its text and whether both agree.

    ``caption`` describes the matrix. ``grid`` is ``None`` with too many categories for a plot. ``weighted``: cells are
    sums of weights, not counts of answers."""

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]
    grid: ConfusionGrid | None
    texts: tuple[str, ...]
    caption: str
    weighted: bool

    @property
    def cells(self) -> list[tuple[Any, str]]:
        return list(zip(self.grid.cells, self.texts, strict=True)) if self.grid else []


class Plot(NamedTuple):
    """Plot with its data table, whose caption describes the plot."""

    chart: JudgeAgainstExpert | ReliabilityPlot | Differences | Timeline
    table: PlotTable


class JudgePlots(NamedTuple):
    """Plots of one judge; ``None`` for those that its scale does not have.

    They are the confusion matrix, the judge's values against the experts' means, the reliability curve, and the bias
    overall and by category. ``is_open``: the plots are expanded at first."""

    title: str
    is_open: bool
    confusion: Confusion | None
    scatter: Plot | None
    curve: Plot | None
    bias: Plot | None

    @property
    def has_plots(self) -> bool:
        return any((self.confusion, self.scatter, self.curve, self.bias))


class TrendLine(NamedTuple):
    """One metric over time, with marks for changes of the judge, its rubric, its method, or the model that answers."""

    title: str
    statistic: str
    plot: Plot


def judge_plots(title: str, figures: Figures, *, is_open: bool) -> JudgePlots:
    """Build the plots from a judge's agreement figures in their JSON form, by category."""
    if not figures["n"]:
        return JudgePlots(title, is_open, None, None, None, None)
    scale = Scale.parse(figures["scale"])
    plane = None if scale.kind is ScaleKind.CLASS else Plane(scale.low, scale.high, scale.levels)
    return JudgePlots(
        title=title,
        is_open=is_open,
        confusion=_confusion_matrix(figures, scale),
        scatter=None if plane is None or scale.kind is ScaleKind.YES_NO else _scatter_plot(figures, scale, plane),
        curve=None if plane is None else _reliability_plot(figures, scale, plane),
        bias=_bias_plot(figures, scale),
    )


def _confusion_matrix(figures: Figures, scale: Scale) -> Confusion | None:
    matrix = figures["confusion"]
    if matrix is None:
        return None
    weighted = figures["sampling"] == "weighted"
    labels = tuple(numbers.on_scale(label, scale) for label in figures["labels"])
    decimals = 1 if weighted else 0
    rows = tuple(
        (labels[i], tuple((numbers.format_number(cell, decimals), i == j) for j, cell in enumerate(row)))
        for i, row in enumerate(matrix)
    )
    agreeing = sum(row[index] for index, row in enumerate(matrix))
    text = _("Confusion matrix: both said the same on %(same)s of %(n)s answers")
    if weighted:
        text = _("Confusion matrix, answers weighted: both said the same on %(same)s of %(n)s")
    caption = str(text) % {"same": numbers.format_number(agreeing, decimals), "n": figures["n"]}
    texts = tuple(text for _, cells in rows for text, _ in cells)
    return Confusion(labels, rows, confusion_grid(matrix, labels), texts, caption, weighted)


def _scatter_plot(figures: Figures, scale: Scale, plane: Plane) -> Plot:
    points = [(float(expert), float(judge), int(count)) for expert, judge, count in figures["places"]]
    above, below = (
        sum(answer_count for expert_mean, judge_mean, answer_count in points if (judge_mean - expert_mean) * sign > 0)
        for sign in (1, -1)
    )
    caption = gettext("Judge against experts: the judge gave more on %(above)d answers, less on %(below)d of %(n)d") % {
        "above": above,
        "below": below,
        "n": sum(count for _, _, count in points),
    }
    rows = tuple(
        (numbers.on_scale(expert, scale), (numbers.on_scale(judge, scale), str(count)))
        for expert, judge, count in points
    )
    table = PlotTable(caption, gettext("Experts’ mean"), (gettext("Judge"), gettext("Answers")), rows)
    return Plot(judge_against_expert(points, plane), table)


def _reliability_plot(figures: Figures, scale: Scale, plane: Plane) -> Plot | None:
    points = figures["reliability_curve"]
    if not points:
        return None
    caption = gettext("Reliability curve: the experts’ mean where the judge gave a certain value")
    rows = tuple(
        (
            numbers.format_number(point["judge"]),
            (
                numbers.format_number(point["expert"]),
                numbers.format_interval(point["low"], point["high"]) or "–",
                str(point["n"]),
            ),
        )
        for point in points
    )
    header = (gettext("Experts’ mean"), gettext("95% interval"), gettext("Answers"))
    chart = reliability_plot(
        [(point["judge"], point["expert"], point["low"], point["high"]) for point in points], plane
    )
    return Plot(chart, PlotTable(caption, gettext("Judge gave"), header, rows))


def _bias_plot(figures: Figures, scale: Scale) -> Plot | None:
    if figures["bias"] is None:
        return None
    figures_by_category: Mapping[str, Figures] = figures.get("by_category", {})
    rows = [_difference(gettext("all answers"), figures)]
    if len(figures_by_category) > 1:
        rows += [
            _difference(category_name(category), category_figures)
            for category, category_figures in figures_by_category.items()
        ]
    header = (gettext("Judge minus experts"), gettext("95% interval"), gettext("Answers"))
    lines = tuple((row.label, (row.text or row.withheld, row.interval or "–", row.note)) for row in rows)
    return Plot(
        differences(rows, scale.width), PlotTable(gettext("Bias by category"), gettext("Category"), header, lines)
    )


def _difference(label: str, figures: Figures) -> Difference:
    count = gettext("n = %(count)d") % {"count": figures["n"]}
    if figures["bias"] is None:
        return Difference(label, None, withheld=explain_reason(figures["undefined"]["bias"]), note=count)
    low, high = figures["intervals"].get("bias", (None, None))
    return Difference(
        label,
        figures["bias"],
        low,
        high,
        numbers.format_signed(figures["bias"]),
        numbers.format_interval(low, high),
        note=count,
    )


def trend_context(trends: Trends) -> dict[str, Any]:
    """Context of ``review/agreement/_over_time.html``: a line for every metric with at least two points, and the number
    of runs left out."""
    trends_with_points = {metric: trend for metric, trend in sorted(trends.by_metric.items()) if len(trend.points) > 1}
    language = get_language() or "en"
    lines = [_trend_line(trend.title.in_language(language), trend) for trend in trends_with_points.values()]
    return {"lines": lines, "left_out": len(trends.skipped_runs)}


def _trend_line(title: str, trend: Trend) -> TrendLine:
    changes = ["", *(_change_text(previous, current) for previous, current in pairwise(trend.points))]
    moments = [
        Moment(_period_text(point), point.value, point.low, point.high, change)
        for point, change in zip(trend.points, changes, strict=True)
    ]
    rows = tuple(
        (
            f"{_period_text(point)} · {point.name}",
            (
                "–" if point.value is None else numbers.format_number(point.value),
                numbers.format_interval(point.low, point.high) or "–",
                str(point.n),
                point.judge,
                point.rubric or "–",
                change or "–",
            ),
        )
        for point, change in zip(trend.points, changes, strict=True)
    )
    header = (
        str(STATISTICS[trend.statistic][0]),
        gettext("95% interval"),
        gettext("Answers"),
        gettext("Judge"),
        gettext("Rubric"),
        gettext("Changed"),
    )
    caption = gettext("%(metric)s: agreement of judge and experts at %(count)d times") % {
        "metric": title,
        "count": len(trend.points),
    }
    return TrendLine(title, trend.statistic, Plot(timeline(moments), PlotTable(caption, gettext("Run"), header, rows)))


def _change_text(previous: TrendPoint, current: TrendPoint) -> str:
    judge, rubric = previous.judge != current.judge, previous.rubric != current.rubric
    if judge and rubric:
        return gettext("new judge and rubric")
    if judge:
        return gettext("new judge")
    if rubric:
        return gettext("new rubric")
    if previous.method != current.method:
        return gettext("other way to a value")
    both_served = previous.served_model and current.served_model
    return gettext("another model answered") if both_served and previous.served_model != current.served_model else ""


def _period_text(point: TrendPoint) -> str:
    return point.period or formats.date_format(timezone.localtime(point.at), "SHORT_DATE_FORMAT")
