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
    "exact": (_("exact agreement"), _("share of answers with the same value from both")),
    "within_one": (_("within one level"), _("share of answers at most one level apart")),
    "mae": (_("mean absolute error"), _("average difference in levels")),
    "bias": (_("bias"), _("mean of judge minus expert (above 0: the judge is lenient)")),
    "cohen_kappa": (_("Cohen’s κ"), _("exact agreement beyond chance (1 = perfect, 0 = chance)")),
    "cohen_kappa_linear": (_("κ, linear weights"), _("agreement beyond chance (near misses count partly)")),
    "cohen_kappa_quadratic": (_("κ, quadratic weights"), _("agreement beyond chance (large differences weigh most)")),
    "rmse": (_("root mean squared error"), _("like the mean absolute error, but large errors weigh more")),
    "pearson": (_("Pearson’s r"), _("strength of the linear relationship")),
    "spearman": (_("Spearman’s ρ"), _("how far both rank the answers alike")),
    "kendall_tau_b": (_("Kendall’s τ-b"), _("answer pairs ranked alike minus those ranked differently")),
    "krippendorff_alpha_nominal": (_("Krippendorff’s α, nominal"), _("reliability (all differences count the same)")),
    "krippendorff_alpha_ordinal": (_("Krippendorff’s α, ordinal"), _("reliability (differences count by rank)")),
    "krippendorff_alpha_interval": (_("Krippendorff’s α, interval"), _("reliability (differences count squared)")),
    "gwet_ac1": (_("Gwet’s AC1"), _("agreement beyond chance, stable if almost all is at one level")),
    "gwet_ac2": (_("Gwet’s AC2, quadratic"), _("AC1 with quadratic weights")),
    "fleiss_kappa": (_("Fleiss’ κ"), _("agreement beyond chance among several people")),
    "tpr": (_("acceptable answers found"), _("share of expert-accepted answers that the judge accepts")),
    "tnr": (_("unacceptable answers found"), _("share of expert-rejected answers that the judge rejects")),
    "precision": (_("precision"), _("share of judge-accepted answers that experts accept")),
    "recall": (_("recall"), _("same as acceptable answers found")),
    "f1": (_("F1"), _("harmonic mean of precision and recall")),
    "balanced_accuracy": (_("balanced accuracy"), _("mean of acceptable and unacceptable answers found")),
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
    text = _("Confusion matrix: same value on %(same)s of %(n)s answers")
    if weighted:
        text = _("Confusion matrix (weighted counts): same value on %(same)s of %(n)s answers")
    caption = str(text) % {"same": numbers.format_number(agreeing, decimals), "n": figures["n"]}
    texts = tuple(text for _, cells in rows for text, _ in cells)
    return Confusion(labels, rows, confusion_grid(matrix, labels), texts, caption, weighted)


def _scatter_plot(figures: Figures, scale: Scale, plane: Plane) -> Plot:
    points = [(float(expert), float(judge), int(count)) for expert, judge, count in figures["places"]]
    above, below = (
        sum(answer_count for expert_mean, judge_mean, answer_count in points if (judge_mean - expert_mean) * sign > 0)
        for sign in (1, -1)
    )
    caption = gettext("Judge and experts: judge higher on %(above)d, lower on %(below)d of %(n)d answers") % {
        "above": above,
        "below": below,
        "n": sum(count for _, _, count in points),
    }
    rows = tuple(
        (numbers.on_scale(expert, scale), (numbers.on_scale(judge, scale), str(count)))
        for expert, judge, count in points
    )
    table = PlotTable(caption, gettext("Expert mean"), (gettext("Judge"), gettext("Answers")), rows)
    return Plot(judge_against_expert(points, plane), table)


def _reliability_plot(figures: Figures, scale: Scale, plane: Plane) -> Plot | None:
    points = figures["reliability_curve"]
    if not points:
        return None
    caption = gettext("Reliability curve: expert mean for each judge score")
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
    header = (gettext("Expert mean"), gettext("95% CI"), gettext("Answers"))
    chart = reliability_plot(
        [(point["judge"], point["expert"], point["low"], point["high"]) for point in points], plane
    )
    return Plot(chart, PlotTable(caption, gettext("Judge score"), header, rows))


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
    header = (gettext("Judge minus experts"), gettext("95% CI"), gettext("Answers"))
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
        gettext("95% CI"),
        gettext("Answers"),
        gettext("Judge"),
        gettext("Rubric"),
        gettext("Change"),
    )
    caption = gettext("%(metric)s: judge and expert agreement at %(count)d points in time") % {
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
        return gettext("new scoring method")
    both_served = previous.served_model and current.served_model
    return gettext("new served model") if both_served and previous.served_model != current.served_model else ""


def _period_text(point: TrendPoint) -> str:
    return point.period or formats.date_format(timezone.localtime(point.at), "SHORT_DATE_FORMAT")
