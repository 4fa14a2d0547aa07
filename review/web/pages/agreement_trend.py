"""Agreement over time: one line for each metric, with a mark where the judge changed, its rubric, how its values come
about, or the model that answers under its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from django.urls import reverse
from django.utils import formats, timezone
from django.utils.translation import get_language, gettext

from evaluation.models import Run
from evaluation.wording import numbers
from review.charts.timeline import Moment, Timeline, timeline
from review.comparisons.trend import Trend, TrendPoint
from review.web.pages.statistic_names import STATISTICS
from review.web.pages.twin import Twin


@dataclass(frozen=True, slots=True)
class TrendLine:
    """One metric over time. ``links`` lead to the runs, in the order of the table's rows."""

    title: str
    statistic: str
    meaning: str
    name: str
    chart: Timeline
    twin: Twin
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrendPage:
    """The lines of every metric that has at least two points."""

    run_id: int
    lines: tuple[TrendLine, ...]


def trend_page(run: Run, trends: Mapping[str, Trend]) -> TrendPage:
    """The lines, in the order of the metrics."""
    several = {metric: one for metric, one in sorted(trends.items()) if len(one.points) > 1}
    language = get_language() or "en"
    return TrendPage(run.pk, tuple(_line(one.title.in_language(language), one) for one in several.values()))


def _line(title: str, trend: Trend) -> TrendLine:
    statistic, meaning = (str(text) for text in STATISTICS[trend.statistic])
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
        statistic,
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
    links = tuple(reverse("run-agreement", args=[one.run_id]) for one in trend.points)
    return TrendLine(
        title, statistic, meaning, name, timeline(moments), Twin(name, gettext("Run"), header, rows), links
    )


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
