"""What each agreement statistic is called and means, in one line each.

The plots of one judge against the experts, and its agreement over time, each with the same figures as a table.
"""

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
from evaluation.messages.sentences import category_name, explain_reason
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

#: name -> (title, meaning), in the order of the page.
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
FIRST = ("exact", "within_one", "mae", "bias", "cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic")


Figures = Mapping[str, Any]


class Twin(NamedTuple):
    """The table behind a picture: a heading for its first column and for the others; a row is its heading and its
    cells."""

    caption: str
    what: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


class Confusion(NamedTuple):
    """How often experts (rows) and judge (columns) gave which level: a cell is its text and whether both agree.
    ``grid`` is missing where there are too many categories for a picture; ``weighted``: cells are no whole answers."""

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]
    grid: ConfusionGrid | None
    texts: tuple[str, ...]
    name: str
    weighted: bool

    @property
    def cells(self) -> list[tuple[Any, str]]:
        """The grid's cells with their texts."""
        return list(zip(self.grid.cells, self.texts, strict=True)) if self.grid else []


class Plot(NamedTuple):
    """A picture with the table behind it, whose caption says in words what the picture shows."""

    chart: JudgeAgainstExpert | ReliabilityPlot | Differences | Timeline
    twin: Twin


class JudgePlots(NamedTuple):
    """All plots of one judge; those that its scale does not have are ``None``: the confusion matrix, the judge's values
    beside the experts' means, the reliability curve, judge minus expert overall and by category. ``unfolded``: shown
    without asking."""

    title: str
    unfolded: bool
    confusion: Confusion | None
    places: Plot | None
    curve: Plot | None
    bias: Plot | None

    @property
    def any(self) -> bool:
        """Whether there is anything to see."""
        return any((self.confusion, self.places, self.curve, self.bias))


class TrendLine(NamedTuple):
    """One metric over time, with a mark where the judge changed, its rubric, how its values come about, or the model
    that answers under its name."""

    title: str
    statistic: str
    plot: Plot


def judge_plots(title: str, of: Figures, *, unfolded: bool) -> JudgePlots:
    """The plots of a judge's agreement figures, in the form of the contract with categories."""
    if not of["n"]:
        return JudgePlots(title, unfolded, None, None, None, None)
    scale = Scale.parse(of["scale"])
    plane = None if scale.kind is ScaleKind.CLASS else Plane(scale.low, scale.high, scale.levels)
    return JudgePlots(
        title=title,
        unfolded=unfolded,
        confusion=_confusion(of, scale),
        places=None if plane is None or scale.kind is ScaleKind.YES_NO else _places(of, scale, plane),
        curve=None if plane is None else _curve(of, scale, plane),
        bias=_bias(of, scale),
    )


def _confusion(of: Figures, scale: Scale) -> Confusion | None:
    matrix = of["confusion"]
    if matrix is None:
        return None
    weighted = of["sampling"] == "weighted"
    labels = tuple(numbers.on_scale(label, scale) for label in of["labels"])
    decimals = 1 if weighted else 0
    rows = tuple(
        (labels[i], tuple((numbers.plain(cell, decimals), i == j) for j, cell in enumerate(row)))
        for i, row in enumerate(matrix)
    )
    same = sum(row[at] for at, row in enumerate(matrix))
    text = _("Confusion matrix: both said the same on %(same)s of %(n)s answers")
    if weighted:
        text = _("Confusion matrix, answers weighted: both said the same on %(same)s of %(n)s")
    name = str(text) % {"same": numbers.plain(same, decimals), "n": of["n"]}
    texts = tuple(text for _, cells in rows for text, _ in cells)
    return Confusion(labels, rows, confusion_grid(matrix, labels), texts, name, weighted)


def _places(of: Figures, scale: Scale, plane: Plane) -> Plot:
    places = [(float(expert), float(judge), int(count)) for expert, judge, count in of["places"]]
    above, below = (sum(c for e, j, c in places if (j - e) * sign > 0) for sign in (1, -1))
    name = gettext("Judge against experts: the judge gave more on %(above)d answers, less on %(below)d of %(n)d") % {
        "above": above,
        "below": below,
        "n": sum(count for _, _, count in places),
    }
    rows = tuple(
        (numbers.on_scale(expert, scale), (numbers.on_scale(judge, scale), str(count)))
        for expert, judge, count in places
    )
    twin = Twin(name, gettext("Experts’ mean"), (gettext("Judge"), gettext("Answers")), rows)
    return Plot(judge_against_expert(places, plane), twin)


def _curve(of: Figures, scale: Scale, plane: Plane) -> Plot | None:
    points = of["reliability_curve"]
    if not points:
        return None
    name = gettext("Reliability curve: the experts’ mean where the judge gave a certain value")
    rows = tuple(
        (
            numbers.plain(one["judge"]),
            (numbers.plain(one["expert"]), numbers.interval(one["low"], one["high"]) or "–", str(one["n"])),
        )
        for one in points
    )
    header = (gettext("Experts’ mean"), gettext("95% interval"), gettext("Answers"))
    chart = reliability_plot([(one["judge"], one["expert"], one["low"], one["high"]) for one in points], plane)
    return Plot(chart, Twin(name, gettext("Judge gave"), header, rows))


def _bias(of: Figures, scale: Scale) -> Plot | None:
    if of["bias"] is None:
        return None
    parts: Mapping[str, Figures] = of.get("by_category", {})
    rows = [_difference(gettext("all answers"), of)]
    if len(parts) > 1:
        rows += [_difference(category_name(category), part) for category, part in parts.items()]
    header = (gettext("Judge minus experts"), gettext("95% interval"), gettext("Answers"))
    lines = tuple((row.label, (row.text or row.withheld, row.interval or "–", row.note)) for row in rows)
    return Plot(differences(rows, scale.width), Twin(gettext("Bias by category"), gettext("Category"), header, lines))


def _difference(label: str, of: Figures) -> Difference:
    count = gettext("n = %(count)d") % {"count": of["n"]}
    if of["bias"] is None:
        return Difference(label, None, withheld=explain_reason(of["undefined"]["bias"]), note=count)
    low, high = of["intervals"].get("bias", (None, None))
    return Difference(label, of["bias"], low, high, numbers.signed(of["bias"]), numbers.interval(low, high), note=count)


def over_time(trends: Trends) -> dict[str, Any]:
    """The lines of every metric that has at least two points, in the order of the metrics, and how many runs are left
    out: what ``review/agreement/_over_time.html`` shows."""
    several = {metric: one for metric, one in sorted(trends.of_metric.items()) if len(one.points) > 1}
    language = get_language() or "en"
    lines = [_line(one.title.in_language(language), one) for one in several.values()]
    return {"lines": lines, "left_out": len(trends.left_out)}


def _line(title: str, trend: Trend) -> TrendLine:
    changes = ["", *(_change(before, after) for before, after in pairwise(trend.points))]
    moments = [
        Moment(_day(one), one.value, one.low, one.high, change)
        for one, change in zip(trend.points, changes, strict=True)
    ]
    rows = tuple(
        (
            f"{_day(one)} · {one.name}",
            (
                "–" if one.value is None else numbers.plain(one.value),
                numbers.interval(one.low, one.high) or "–",
                str(one.n),
                one.judge,
                one.rubric or "–",
                change or "–",
            ),
        )
        for one, change in zip(trend.points, changes, strict=True)
    )
    header = (
        str(STATISTICS[trend.statistic][0]),
        gettext("95% interval"),
        gettext("Answers"),
        gettext("Judge"),
        gettext("Rubric"),
        gettext("Changed"),
    )
    name = gettext("%(metric)s: agreement of judge and experts at %(count)d times") % {
        "metric": title,
        "count": len(trend.points),
    }
    return TrendLine(title, trend.statistic, Plot(timeline(moments), Twin(name, gettext("Run"), header, rows)))


def _change(before: TrendPoint, after: TrendPoint) -> str:
    judge, rubric = before.judge != after.judge, before.rubric != after.rubric
    if judge and rubric:
        return gettext("new judge and rubric")
    if judge:
        return gettext("new judge")
    if rubric:
        return gettext("new rubric")
    if before.method != after.method:
        return gettext("other way to a value")
    told = before.served and after.served
    return gettext("another model answered") if told and before.served != after.served else ""


def _day(point: TrendPoint) -> str:
    return point.period or formats.date_format(timezone.localtime(point.at), "SHORT_DATE_FORMAT")
