"""Runs as rows of a list: the headline with its interval, trust, reviews, state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext

from evaluation.models import Run
from evaluation.wording import numbers
from evaluation.wording.messages import explain_reason
from review.charts.axis import Tick
from review.charts.forest import Drawn, Figure, Forest, ForestRow, Shape, forest
from review.comparisons.summaries import Headline
from review.web.pages.state import StateChip, state_chip

LISTED = ("answer_set__question_set", Run.NAMED_BY)  # what rows of runs must come with
KINDS = {"corrected": Shape.CORRECTED, "expert": Shape.EXPERT, "judge": Shape.JUDGE, "plain-mark": Shape.PLAIN}


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list. ``drawn`` is its headline over the list's common axis, ``None`` without one; then ``without``
    says why. ``says`` names which score it is."""

    pk: int
    name: str
    questions: str
    system: str
    at: datetime
    chip: StateChip
    drawn: Drawn | None
    says: str
    without: str
    kappa: str
    rated: int
    answers: int


@dataclass(frozen=True, slots=True)
class RunRows:
    """The rows with the ticks of the axis that their headlines share."""

    rows: tuple[RunRow, ...]
    ticks: tuple[Tick, ...]


def run_rows(runs: Sequence[Run], headlines: Mapping[int, Headline]) -> RunRows:
    """The rows of a list; figures are drawn over 0 to 1, so that rows can be compared by eye."""
    shown = {pk: one for pk, one in headlines.items() if one.value is not None}
    chart = _chart(shown)
    drawn = dict(zip(shown, chart.rows, strict=True))
    return RunRows(tuple(_row(run, headlines.get(run.pk), drawn.get(run.pk)) for run in runs), chart.ticks)


def _chart(shown: Mapping[int, Headline]) -> Forest:
    rows = [
        ForestRow(str(pk), KINDS[one.kind], Figure(one.value or 0.0, one.low, one.high)) for pk, one in shown.items()
    ]
    return forest(rows)


def _row(run: Run, headline: Headline | None, drawn: Drawn | None) -> RunRow:
    return RunRow(
        pk=run.pk,
        name=str(run),
        questions=str(run.answer_set.question_set),
        system=str(run.answer_set.system_version),
        at=run.finished_at or run.started_at or run.created_at,
        chip=state_chip(run.state),
        drawn=drawn,
        says=_says(headline) if headline and drawn else "",
        without=explain_reason(headline.withheld) if headline and drawn is None else "",
        kappa="" if headline is None or headline.kappa is None else numbers.plain(headline.kappa),
        rated=headline.rated if headline else 0,
        answers=headline.answers if headline else 0,
    )


def _says(headline: Headline) -> str:
    if headline.label != "overall_score":
        return gettext("parts only, weight %(weight)s") % {"weight": numbers.plain(headline.weight)}
    return {
        "corrected": gettext("corrected"),
        "expert": gettext("reviewed"),
        "judge": gettext("judge only"),
    }.get(headline.kind, "")
