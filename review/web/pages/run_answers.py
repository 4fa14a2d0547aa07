"""The answers of a run, filtered, and the preview of one decision about many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.models import MetricDefinition, Run
from evaluation.wording import numbers
from evaluation.wording.categories import category_name
from evaluation.wording.markdown import language_of
from evaluation.wording.messages import explain_reason
from review.decisions.overrides import Effect
from review.evidence.effective import Source
from review.results.selection import Selected, Selection, Wanted
from review.web.pages.answer import MARKS
from review.web.pages.links import answer_href

SOURCES = {
    Source.JUDGE: _("judge"),
    Source.RULE: _("rule"),
    Source.REVIEW: _("experts"),
    Source.OVERRIDE: _("decided by a lead or assigned expert"),
    Source.NONE: _("no value"),
}


@dataclass(frozen=True, slots=True)
class Option:
    """An entry of a filter."""

    value: str
    title: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer with the value that counts and whose it is."""

    pk: int
    href: str
    question_id: str
    question: str
    language: str
    category: str
    value: str
    mark: str
    source: str


@dataclass(frozen=True, slots=True)
class RunAnswersPage:
    """One page of answers; ``count`` match in all. ``choices`` are the values a decision can give, empty where a number
    is asked for. ``query`` are the filters, ``filters`` the same as hidden fields, ``back`` and ``on`` the pages
    beside."""

    run_id: int
    run_name: str
    metric: str
    metric_title: str
    rows: tuple[AnswerRow, ...]
    count: int
    metrics: tuple[Option, ...]
    categories: tuple[Option, ...]
    sources: tuple[Option, ...]
    wanted: Wanted
    choices: tuple[tuple[str, str], ...]
    low: str
    high: str
    may_override: bool
    query: str
    filters: tuple[tuple[str, str], ...]
    back: str
    on: str
    error: str


@dataclass(frozen=True, slots=True)
class ManyPage:
    """What a decision about many answers would do, before it is confirmed. ``mark`` is of the selection that was seen,
    ``chosen`` the answers that were ticked, none for all that match."""

    run_id: int
    run_name: str
    metric: str
    metric_title: str
    value: str
    entered: str
    reason: str
    effect: Effect
    rows: tuple[AnswerRow, ...]
    mark: str
    chosen: tuple[int, ...]
    query: str
    filters: tuple[tuple[str, str], ...]


def run_answers_page(
    run: Run,
    found: Selection,
    shown: Sequence[Selected],
    wanted: Wanted,
    *,
    may_override: bool,
    query: str,
    filters: tuple[tuple[str, str], ...],
    back: str = "",
    on: str = "",
    error: str = "",
) -> RunAnswersPage:
    """The page of a run's answers."""
    language = get_language() or "en"
    metric = found.metric
    scale = metric.read_scale() if metric else None
    return RunAnswersPage(
        run_id=run.pk,
        run_name=str(run),
        metric=metric.name if metric else "",
        metric_title=title_of(metric, language),
        rows=tuple(answer_row(one, run, metric) for one in shown),
        count=len(found.rows),
        metrics=tuple(Option(one.name, title_of(one, language), one == metric) for one in found.metrics),
        categories=tuple(Option(one, category_name(one), one == wanted.category) for one in found.categories),
        sources=tuple(Option(str(one), str(title), str(one) == wanted.source) for one, title in SOURCES.items()),
        wanted=wanted,
        choices=_choices(metric) if metric else (),
        low=f"{scale.low:g}" if scale else "",
        high=f"{scale.high:g}" if scale else "",
        may_override=may_override and metric is not None,
        query=query,
        filters=filters,
        back=back,
        on=on,
        error=error,
    )


def answer_row(one: Selected, run: Run, metric: MetricDefinition | None) -> AnswerRow:
    """An answer as a row."""
    effective = one.effective
    said = None if effective is None else (effective.label if effective.value is None else effective.value)
    reason = explain_reason(effective.reason) if effective and effective.reason else gettext("no value")
    source = effective.source if effective else Source.NONE
    return AnswerRow(
        pk=one.answer.answer_id,
        href=answer_href(one.answer.answer_id, run.pk),
        question_id=one.answer.question_id,
        question=one.answer.question,
        language=language_of(one.answer.question),
        category=category_name(one.answer.category),
        value=reason if said is None or metric is None else numbers.on_scale(said, metric.read_scale()),
        mark=MARKS.get(source, ""),
        source=str(SOURCES[source]),
    )


def title_of(metric: MetricDefinition | None, language: str) -> str:
    """The metric's title in the reader's language."""
    return "" if metric is None else metric.title.get(language) or metric.name


def _choices(metric: MetricDefinition) -> tuple[tuple[str, str], ...]:
    scale = metric.read_scale()
    if scale.labels:
        return tuple((label, label) for label in scale.labels)
    return tuple((f"{level:g}", numbers.on_scale(float(level), scale)) for level in scale.levels)
