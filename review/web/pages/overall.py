"""The three overall scores of a run, side by side, and what their difference says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext

from evaluation.profiles.arithmetic import Label
from evaluation.wording import numbers
from review.charts.forest import Forest, Shape, forest
from review.reports.entries import Entry, Output
from review.reports.figure import Figure
from review.reports.figure_notes import notes
from review.reports.report import Report, ThreeScores
from review.reports.sections import OVERALL, figures_of
from review.web.pages.figures import facts, row

NOTICEABLE = 0.005  # a difference that does not show at two decimals is not put into words


@dataclass(frozen=True, slots=True)
class OverallCard:
    """The card of the overall score: its figures, what they say, and what else is told of the score."""

    chart: Forest
    remarks: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    examples: bool


def overall_card(report: Report, titles: Mapping[str, str]) -> OverallCard:
    """Corrected first, then reviewed, then judge-only; a figure of some parts only stands in a row of its own.
    ``titles`` are the metrics' by name."""
    scores = report.overall
    notes_by = {
        Shape.CORRECTED: gettext("what experts would say of all"),
        Shape.EXPERT: gettext("experts where they rated"),
        Shape.JUDGE: gettext("as it came"),
    }
    found = figures_of(report, Output.PAGE)
    if scores.part_only is not None:
        found = [one for one in found if one[0].mark is Shape.PLAIN]
        notes_by[Shape.PLAIN] = gettext("weight %(weight)s of the profile") % {"weight": numbers.plain(scores.weight)}
    rows = [
        row(
            _title(entry, scores),
            entry.mark or Shape.PLAIN,
            figure,
            note=notes_by.get(entry.mark, "") if entry.mark else "",
            titles=titles,
        )
        for entry, figure in found
    ]
    chart = forest(rows, tall=True)
    return OverallCard(chart, tuple(_remarks(scores, titles)), facts(OVERALL, report), scores.examples)


def _title(entry: Entry[Report], scores: ThreeScores) -> str:
    if entry.mark is Shape.PLAIN and scores.label is Label.RULES_ONLY:
        return gettext("Rules only")
    return capfirst(entry.page_heading)


def _remarks(scores: ThreeScores, titles: Mapping[str, str]) -> list[str]:
    found = []
    corrected, judge = scores.corrected.value, scores.judge_only.value
    if corrected is not None and judge is not None and abs(judge - corrected) >= NOTICEABLE:
        found.append(_generosity(judge - corrected))
    found += _labels(scores.corrected)
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


def _labels(corrected: Figure) -> list[str]:
    labels, effective = corrected.extra.get("labels"), corrected.extra.get("effective_labels")
    if corrected.value is None or not labels or not effective or round(effective) <= labels:
        return []
    counts = {"labels": labels, "effective": round(effective)}
    return [gettext("%(labels)s expert ratings did the work of %(effective)s random ones.") % counts]
