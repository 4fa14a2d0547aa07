"""Report figures as rows of a plot, cells of a table and facts: the table of metrics, the overall scores, and the worst
answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from django.utils.text import capfirst
from django.utils.translation import get_language, gettext, ngettext

from evaluation.core.scales import Scale
from evaluation.messages import numbers
from evaluation.profiles.arithmetic import Label
from review.charts import forest as charts
from review.charts.forest import Forest, Shape, forest
from review.evidence.answers import RunAnswer
from review.reports.entries import Entry, Output, Section
from review.reports.estimates import ThreeScores
from review.reports.figure import Figure, any_time_sentence, notes, why_withheld
from review.reports.lines import MetricLine
from review.reports.report import Report
from review.reports.sections import (
    ANSWERS,
    COVERAGE,
    METRICS,
    OVERALL,
    ToldAnswer,
    facts_of,
    figures_of,
    target_in_words,
)
from review.statistics.correction.outcome import Target

_NO_TITLES: Mapping[str, str] = MappingProxyType({})


class Cell(NamedTuple):
    """A figure in a table. Without ``value`` there is a ``reason``; ``bounds`` tell what failures could have done."""

    value: str
    interval: str
    bounds: str
    reason: str


def cell(figure: Figure, scale: Scale | None = None, titles: Mapping[str, str] = _NO_TITLES) -> Cell:
    """The figure as text; on a scale of seconds with its unit. ``titles`` are the metrics' by name, for what is
    missing."""
    bounds = bounds_text(figure)
    if figure.value is None:
        return Cell("", "", bounds, why_withheld(figure, titles))
    value = numbers.plain(figure.value)
    if scale and scale.kind == "seconds":
        value = numbers.seconds(figure.value)
    return Cell(value, numbers.interval(figure.low, figure.high), bounds, "")


def said(entry: Entry[Any], value: Any, scale: Scale | None = None) -> Cell:
    """A value of an entry: figures with interval and bounds, other numbers and texts as they are."""
    return cell(value, scale) if isinstance(value, Figure) else Cell(fact_text(entry, value), "", "", "")


def fact_text(entry: Entry[Any], value: Any) -> str:
    """A value of an entry that is no figure."""
    return entry.text(value, 2).replace("-", "\N{MINUS SIGN}") if isinstance(value, float) else entry.text(value)


def facts(section: Section[Report, Report], report: Report, output: Output) -> tuple[tuple[str, str], ...]:
    """What a section says of the run beside its figures, as terms with texts."""
    return tuple((one.page_heading, fact_text(one, value)) for one, value in facts_of(section, report, output))


def bounds_text(figure: Figure) -> str:
    """Between which values the figure lies whatever the failed results would have been; empty where none failed."""
    if figure.worst is None or figure.best is None:
        return ""
    ends = {"worst": numbers.plain(figure.worst), "best": numbers.plain(figure.best)}
    return gettext("Between %(worst)s and %(best)s, whatever the failed results would have been.") % ends


def row(
    label: str,
    shape: charts.Shape,
    figure: Figure,
    *,
    note: str = "",
    count: int | None = None,
    href: str = "",
    titles: Mapping[str, str] = _NO_TITLES,
) -> charts.ForestRow:
    """The figure as a row of a plot; a withheld one says why, with its bounds where it has any."""
    if figure.value is None:
        reason = " ".join(part for part in (why_withheld(figure, titles), bounds_text(figure)) if part)
        return charts.ForestRow(label, shape, None, note=note, count=count, withheld=reason, href=href)
    drawn = charts.Figure(figure.value, figure.low, figure.high)
    return charts.ForestRow(label, shape, drawn, note=note, count=count, href=href)


class MetricCell(NamedTuple):
    """A cell under an entry; ``bad`` where the count ought to be nought and is not."""

    entry: Entry[MetricLine]
    figure: Cell
    bad: bool


class MetricTable(NamedTuple):
    """The metrics of a run: means three ways, and how many answers they rest on. Beside its cells a row has how long
    latencies take at most in 95 of 100 cases. ``chart`` has every mean as a share of its scale."""

    chart: Forest | None
    columns: Sequence[Entry[MetricLine]]
    rows: Sequence[tuple[MetricLine, Sequence[MetricCell], str]]


def metric_table(report: Report, output: Output) -> MetricTable:
    """The weighted metrics of the profile first, then the reported ones."""
    lines = sorted(report.metrics, key=lambda line: -line.weight)
    entries = [*METRICS.entries(output), *COVERAGE.entries(output)]
    rows = [
        (
            line,
            [_metric_cell(one, line) for one in entries],
            numbers.seconds(line.latency.p95) if line.latency else "",
        )
        for line in lines
    ]
    drawn = [drawn for line in lines if line.latency is None and (drawn := _metric_row(line))]
    return MetricTable(forest(drawn) if drawn else None, entries, rows)


def _metric_cell(entry: Entry[MetricLine], line: MetricLine) -> MetricCell:
    value = entry.of(line)
    return MetricCell(entry, said(entry, value, line.scale), bad=entry.bad and bool(value))


def _metric_row(line: MetricLine) -> charts.ForestRow | None:
    """The mean as a share of the scale: corrected where it is, else reviewed, else as it came; ``None`` without one."""
    choices = (
        (Shape.CORRECTED, line.corrected, gettext("corrected")),
        (Shape.EXPERT, line.reviewed if line.rated else None, gettext("reviewed")),
        (Shape.JUDGE if line.kind == "judge" else Shape.PLAIN, line.judge_only, gettext("as it came")),
    )
    low, width = line.scale.low, line.scale.width
    for shape, figure, note in choices:
        if figure is None or figure.value is None or width <= 0:
            continue
        ends = (None if end is None else (end - low) / width for end in (figure.low, figure.high))
        title = line.title.in_language(get_language() or "en")
        return charts.ForestRow(title, shape, charts.Figure((figure.value - low) / width, *ends), note=note)
    return None


NOTICEABLE = 0.005  # a difference that does not show at two decimals is not put into words


class OverallCard(NamedTuple):
    """The card of the overall score: its figures with intervals for ``target`` and, in ``chart_here``, for ``here``,
    what they say, and facts about the score."""

    chart: Forest
    target: str
    chart_here: Forest
    here: str
    remarks: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def overall_card(report: Report, titles: Mapping[str, str], output: Output) -> OverallCard:
    """Corrected first, then reviewed, then judge-only; a figure of some parts only stands in a row of its own.
    ``titles`` are the metrics' by name."""
    scores = report.overall
    notes_by = {
        Shape.CORRECTED: gettext("nobody rated some parts")
        if scores.corrected.partly_corrected
        else gettext("estimated expert score"),
        Shape.EXPERT: gettext("expert ratings, judge elsewhere"),
        Shape.JUDGE: gettext("unadjusted"),
    }
    if scores.part_only is not None:
        notes_by[Shape.PLAIN] = gettext("weight %(weight)s of the profile") % {"weight": numbers.plain(scores.weight)}

    def chart(target: Target) -> Forest:
        rows = [
            row(
                _title(entry, scores),
                entry.mark or Shape.PLAIN,
                figure,
                note=notes_by.get(entry.mark or Shape.PLAIN, ""),
                titles=titles,
            )
            for entry, figure in figures_of(report, output, target)
            if scores.part_only is None or entry.mark is Shape.PLAIN
        ]
        return forest(rows, tall=True)

    like_these, here = Target.QUESTIONS_LIKE_THESE, Target.THIS_RUN
    return OverallCard(
        chart(like_these),
        target_in_words(report, like_these),
        chart(here),
        target_in_words(report, here),
        (*_remarks(scores, titles), *_still_coming(report, titles)),
        facts(OVERALL, report, output),
    )


def _still_coming(report: Report, titles: Mapping[str, str]) -> list[str]:
    """The metrics of which ratings still come in, with what holds whenever one looks."""
    found = [(line.name, any_time_sentence(line.corrected)) for line in report.metrics]
    return [f"{titles[name]}: {sentence}" for name, sentence in found if sentence]


def _title(entry: Entry[Report], scores: ThreeScores) -> str:
    if entry.mark is Shape.PLAIN and scores.label is Label.RULES_ONLY:
        return gettext("Rules only")
    return capfirst(entry.page_heading)


def _remarks(scores: ThreeScores, titles: Mapping[str, str]) -> list[str]:
    found = []
    corrected = None if scores.corrected.partly_corrected else scores.corrected.value
    judge = scores.judge_only.value
    if corrected is not None and judge is not None and abs(judge - corrected) >= NOTICEABLE:
        found.append(_generosity(judge - corrected))
    found += worth_of_labels(scores.corrected)
    found += notes(scores.corrected, titles)
    if scores.mean_shift is not None and abs(scores.mean_shift) >= NOTICEABLE:
        shift = {"shift": numbers.signed(scores.mean_shift)}
        found.append(gettext("After seeing the judge, experts moved by %(shift)s of the scale on average.") % shift)
    if scores.unresolved:
        found.append(
            ngettext(
                "Experts are tied on %(count)d value; a lead has to decide it.",
                "Experts are tied on %(count)d values; a lead has to decide them.",
                scores.unresolved,
            )
            % {"count": scores.unresolved}
        )
    return found


def _generosity(difference: float) -> str:
    by = {"difference": numbers.plain(abs(difference))}
    if difference > 0:
        return gettext("The judge is %(difference)s too generous here.") % by
    return gettext("The judge is %(difference)s too strict here.") % by


LEAST_COMPARED = 50  # labels; of fewer the variance is too uncertain to say what they are worth


def worth_of_labels(corrected: Figure) -> list[str]:
    """How many ratings of a uniform draw without the judge would have given as narrow an interval."""
    labels, effective = corrected.extra.get("labels"), corrected.extra.get("effective_labels")
    if corrected.value is None or not labels or not effective or labels < LEAST_COMPARED or round(effective) == labels:
        return []
    counts = {"labels": labels, "effective": round(effective)}
    return [gettext("%(labels)s expert ratings did the work of %(effective)s random ones.") % counts]


WORST, FURTHEST = 6, 8  # how many of each a run page shows


def worst_answers(report: Report) -> list[tuple[RunAnswer, list[str]]]:
    """The answers with the lowest scores, with what is said of each."""
    entries = ANSWERS.entries(Output.PAGE)
    return [
        (line.answer, [fact_text(one, one.of(ToldAnswer(line))) for one in entries]) for line in report.worst[:WORST]
    ]
