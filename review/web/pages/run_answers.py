"""The answers of a run, filtered, and the preview of one decision about many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext

from evaluation.models import MetricDefinition, Run
from evaluation.wording import numbers
from evaluation.wording.messages import explain_reason
from review.decisions.overrides import Effect
from review.evidence.answers import RunAnswer
from review.evidence.effective import Source
from review.results.selection import Selected, Selection, Wanted
from review.web.forms.decisions import Decided
from review.web.pages.answer import MARKS, SOURCES
from review.web.pages.values import said, value_text

Fields = tuple[tuple[str, str], ...]  # of a form: name and value


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer with the value that counts and whose it is."""

    answer: RunAnswer
    value: str
    mark: str
    source: str


@dataclass(frozen=True, slots=True)
class RunAnswersPage:
    """One page of the answers that match. ``choices`` are the values a decision can give, empty where a number between
    ``low`` and ``high`` is asked for. ``filters`` are what is asked for as hidden fields, ``back`` and ``on`` the pages
    beside."""

    run: Run
    found: Selection
    wanted: Wanted
    rows: tuple[AnswerRow, ...]
    sources: tuple[tuple[Source, str | Promise], ...]
    choices: Fields
    low: str
    high: str
    may_override: bool
    filters: Fields
    back: str
    on: str
    error: str

    @property
    def metric_name(self) -> str:
        """The criterion that is looked at, empty where the run has none."""
        return self.found.metric.name if self.found.metric else ""


@dataclass(frozen=True, slots=True)
class ManyPage:
    """What a decision about many answers would do, before it is confirmed. ``mark`` is of the selection that was seen,
    ``chosen`` the answers that were ticked, none for all that match; ``query`` are the filters, ``filters`` the same as
    hidden fields."""

    run: Run
    decided: Decided
    effect: Effect
    rows: tuple[AnswerRow, ...]
    mark: str
    chosen: tuple[int, ...]
    query: str
    filters: Fields

    @property
    def value(self) -> str:
        """The value in words."""
        return value_text(self.decided, self.decided.metric.read_scale())


def run_answers_page(
    run: Run,
    found: Selection,
    shown: Sequence[Selected],
    wanted: Wanted,
    *,
    may_override: bool,
    filters: Fields,
    back: str = "",
    on: str = "",
    error: str = "",
) -> RunAnswersPage:
    """The page of a run's answers."""
    metric = found.metric
    scale = metric.read_scale() if metric else None
    return RunAnswersPage(
        run=run,
        found=found,
        wanted=wanted,
        rows=tuple(answer_row(one, metric) for one in shown),
        sources=tuple(SOURCES.items()),
        choices=_choices(metric) if metric else (),
        low=f"{scale.low:g}" if scale else "",
        high=f"{scale.high:g}" if scale else "",
        may_override=may_override and metric is not None,
        filters=filters,
        back=back,
        on=on,
        error=error,
    )


def answer_row(one: Selected, metric: MetricDefinition | None) -> AnswerRow:
    """An answer as a row."""
    effective = one.effective
    source = effective.source if effective else Source.NONE
    if metric is None or said(effective) is None:
        value = explain_reason(effective.reason) if effective and effective.reason else gettext("no value")
    else:
        value = value_text(effective, metric.read_scale())
    return AnswerRow(one.answer, value, MARKS.get(source, ""), str(SOURCES[source]))


def _choices(metric: MetricDefinition) -> Fields:
    scale = metric.read_scale()
    if scale.labels:
        return tuple((label, label) for label in scale.labels)
    return tuple((f"{level:g}", numbers.on_scale(float(level), scale)) for level in scale.levels)
