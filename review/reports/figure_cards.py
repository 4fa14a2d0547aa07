"""Report figures as plot rows, table cells and facts for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from django.utils.translation import get_language, gettext, ngettext

from evaluation.core.scales import Scale
from evaluation.messages import numbers
from evaluation.profiles.arithmetic import FigureLabel
from review.charts import forest as charts
from review.charts.forest import Forest, Shape, forest
from review.evidence.answers import RunAnswer
from review.reports.entries import Entry, Output, Section
from review.reports.estimates import OverallScores
from review.reports.figure import Figure, any_time_sentence, notes, withheld_reason
from review.reports.lines import MetricLine
from review.reports.report import Report
from review.reports.sections import (
    ANSWERS,
    COVERAGE,
    METRICS,
    OVERALL,
    AnswerDetail,
    overall_figures,
    section_facts,
    target_in_words,
)
from review.statistics.correction.outcome import Target

_NO_TITLES: Mapping[str, str] = MappingProxyType({})


class FigureCell(NamedTuple):
    """A figure in a table. Without ``value`` there is a ``reason``. ``bounds`` allow for failed results."""

    value: str
    interval: str
    bounds: str
    reason: str


def cell(figure: Figure, scale: Scale | None = None, titles: Mapping[str, str] = _NO_TITLES) -> FigureCell:
    """Format a figure, with its unit on a scale of seconds. ``titles`` name metrics in reasons."""
    bounds = bounds_text(figure)
    if figure.value is None:
        return FigureCell("", "", bounds, withheld_reason(figure, titles))
    value = numbers.format_number(figure.value)
    if scale and scale.kind == "seconds":
        value = numbers.format_seconds(figure.value)
    return FigureCell(value, numbers.format_interval(figure.low, figure.high), bounds, "")


def entry_cell(entry: Entry[Any], value: Any, scale: Scale | None = None) -> FigureCell:
    """Format an entry's value. Figures get an interval and bounds."""
    return cell(value, scale) if isinstance(value, Figure) else FigureCell(fact_text(entry, value), "", "", "")


def fact_text(entry: Entry[Any], value: Any) -> str:
    """Format an entry's value that is not a figure."""
    return entry.text(value, 2).replace("-", "\N{MINUS SIGN}") if isinstance(value, float) else entry.text(value)


def facts(section: Section[Report, Report], report: Report, output: Output) -> tuple[tuple[str, str], ...]:
    """Facts of a section, without figures, as terms with texts."""
    return tuple(
        (entry.page_heading, fact_text(entry, value)) for entry, value in section_facts(section, report, output)
    )


def bounds_text(figure: Figure) -> str:
    """Bounds of a figure for any outcome of failed results. Empty if none failed."""
    if figure.worst is None or figure.best is None:
        return ""
    ends = {"worst": numbers.format_number(figure.worst), "best": numbers.format_number(figure.best)}
    return gettext("Between %(worst)s and %(best)s, depending on the failed results.") % ends


def forest_row(
    label: str,
    shape: charts.Shape,
    figure: Figure,
    *,
    note: str = "",
    count: int | None = None,
    href: str = "",
    titles: Mapping[str, str] = _NO_TITLES,
) -> charts.ForestRow:
    """Plot row of a figure. A withheld figure shows the reason and its bounds, if any."""
    if figure.value is None:
        reason = " ".join(part for part in (withheld_reason(figure, titles), bounds_text(figure)) if part)
        return charts.ForestRow(label, shape, None, note=note, count=count, withheld=reason, href=href)
    chart_figure = charts.Figure(figure.value, figure.low, figure.high)
    return charts.ForestRow(label, shape, chart_figure, note=note, count=count, href=href)


class MetricCell(NamedTuple):
    """A cell of an entry. ``bad`` marks a nonzero count that should be zero."""

    entry: Entry[MetricLine]
    figure: FigureCell
    bad: bool


class MetricTable(NamedTuple):
    """Metrics of a run: three means and the number of answers behind them.

    Each row ends with the 95th percentile of latencies. ``chart`` plots means as shares of their scale."""

    chart: Forest | None
    columns: Sequence[Entry[MetricLine]]
    rows: Sequence[tuple[MetricLine, Sequence[MetricCell], str]]


def metric_table(report: Report, output: Output) -> MetricTable:
    """Metrics by weight, then metrics that are only reported."""
    lines = sorted(report.metrics, key=lambda line: -line.weight)
    entries = [*METRICS.entries(output), *COVERAGE.entries(output)]
    rows = [
        (
            line,
            [_metric_cell(entry, line) for entry in entries],
            numbers.format_seconds(line.latency.p95) if line.latency else "",
        )
        for line in lines
    ]
    chart_rows = [chart_rows for line in lines if line.latency is None and (chart_rows := _metric_row(line))]
    return MetricTable(forest(chart_rows) if chart_rows else None, entries, rows)


def _metric_cell(entry: Entry[MetricLine], line: MetricLine) -> MetricCell:
    value = entry.read(line)
    return MetricCell(entry, entry_cell(entry, value, line.scale), bad=entry.bad and bool(value))


def _metric_row(line: MetricLine) -> charts.ForestRow | None:
    """Best available mean as a share of the scale: corrected, else reviewed, else judge-only. ``None`` without one."""
    choices = (
        (Shape.CORRECTED, line.corrected, gettext("corrected")),
        (Shape.EXPERT, line.reviewed if line.rated else None, gettext("reviewed")),
        (Shape.JUDGE if line.kind == "judge" else Shape.PLAIN, line.judge_only, gettext("unadjusted")),
    )
    low, width = line.scale.low, line.scale.width
    for shape, figure, note in choices:
        if figure is None or figure.value is None or width <= 0:
            continue
        ends = (None if end is None else (end - low) / width for end in (figure.low, figure.high))
        title = line.title.in_language(get_language() or "en")
        return charts.ForestRow(title, shape, charts.Figure((figure.value - low) / width, *ends), note=note)
    return None


# Smaller differences are invisible at two decimals.
MIN_VISIBLE_DIFFERENCE = 0.005


class OverallCard(NamedTuple):
    """Overall score figures with intervals for ``target``, and in ``chart_this_run`` for ``this_run``, with remarks and
    facts."""

    chart: Forest
    target: str
    chart_this_run: Forest
    this_run: str
    remarks: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def overall_card(report: Report, titles: Mapping[str, str], output: Output) -> OverallCard:
    """Corrected, reviewed and judge-only scores. A parts-only figure has a row of its own. ``titles`` name metrics."""
    scores = report.overall
    notes_by = {
        Shape.CORRECTED: gettext("some parts are not rated")
        if scores.corrected.partly_corrected
        else gettext("estimated expert score"),
        Shape.EXPERT: gettext("expert ratings, else judge"),
        Shape.JUDGE: gettext("unadjusted"),
    }
    if scores.part_only is not None:
        notes_by[Shape.PLAIN] = gettext("%(weight)s of the profile's weight") % {
            "weight": numbers.format_number(scores.weight)
        }

    def chart(target: Target) -> Forest:
        rows = [
            forest_row(
                _title(entry, scores),
                entry.mark or Shape.PLAIN,
                figure,
                note=notes_by.get(entry.mark or Shape.PLAIN, ""),
                titles=titles,
            )
            for entry, figure in overall_figures(report, output, target)
            if scores.part_only is None or entry.mark is Shape.PLAIN
        ]
        return forest(rows, tall=True)

    like_these, this_run = Target.QUESTIONS_LIKE_THESE, Target.THIS_RUN
    return OverallCard(
        chart(like_these),
        target_in_words(report, like_these),
        chart(this_run),
        target_in_words(report, this_run),
        (*_remarks(scores, titles), *_any_time_remarks(report, titles)),
        facts(OVERALL, report, output),
    )


def _any_time_remarks(report: Report, titles: Mapping[str, str]) -> list[str]:
    """Any-time intervals of the metrics whose ratings still come in."""
    sentences = [(line.name, any_time_sentence(line.corrected)) for line in report.metrics]
    return [f"{titles[name]}: {sentence}" for name, sentence in sentences if sentence]


def _title(entry: Entry[Report], scores: OverallScores) -> str:
    if entry.mark is Shape.PLAIN and scores.label is FigureLabel.RULES_ONLY:
        return gettext("Rules only")
    return entry.page_heading


def _remarks(scores: OverallScores, titles: Mapping[str, str]) -> list[str]:
    remarks = []
    corrected = None if scores.corrected.partly_corrected else scores.corrected.value
    judge = scores.judge_only.value
    if corrected is not None and judge is not None and abs(judge - corrected) >= MIN_VISIBLE_DIFFERENCE:
        remarks.append(_generosity_remark(judge - corrected))
    remarks += label_efficiency_remarks(scores.corrected)
    remarks += notes(scores.corrected, titles)
    if scores.mean_shift is not None and abs(scores.mean_shift) >= MIN_VISIBLE_DIFFERENCE:
        shift = {"shift": numbers.format_signed(scores.mean_shift)}
        remarks.append(
            gettext("After seeing the judge, experts changed their ratings by %(shift)s of the scale on average.")
            % shift
        )
    if scores.unresolved:
        remarks.append(
            ngettext(
                "Experts are tied on %(count)d value. A lead must decide it.",
                "Experts are tied on %(count)d values. A lead must decide them.",
                scores.unresolved,
            )
            % {"count": scores.unresolved}
        )
    return remarks


def _generosity_remark(difference: float) -> str:
    by = {"difference": numbers.format_number(abs(difference))}
    if difference > 0:
        return gettext("The judge is %(difference)s too lenient here.") % by
    return gettext("The judge is %(difference)s too strict here.") % by


# With fewer labels the variance is too uncertain for this remark.
MIN_LABELS = 50


def label_efficiency_remarks(corrected: Figure) -> list[str]:
    """Number of uniform random ratings that would have given an equally narrow interval."""
    labels, effective = corrected.extra.get("labels"), corrected.extra.get("effective_labels")
    if corrected.value is None or not labels or not effective or labels < MIN_LABELS or round(effective) == labels:
        return []
    counts = {"labels": labels, "effective": round(effective)}
    return [gettext("%(labels)s expert ratings were as precise as %(effective)s random ones.") % counts]


# Rows on a run page.
WORST_COUNT, DISAGREEMENT_COUNT = 6, 8


def worst_answer_facts(report: Report) -> list[tuple[RunAnswer, list[str]]]:
    """The lowest-scored answers with their facts."""
    entries = ANSWERS.entries(Output.PAGE)
    return [
        (line.answer, [fact_text(entry, entry.read(AnswerDetail(line))) for entry in entries])
        for line in report.worst[:WORST_COUNT]
    ]
