"""History of an answer (scores, ratings, overrides, flags), and selection of a run's answers by effective value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Q

from evaluation.core.canonical import content_hash
from evaluation.models import Answer, MetricDefinition, Run, Score, User
from review.evidence.answers import RunAnswer, run_answers
from review.evidence.carried import RatingOrigin
from review.evidence.effective import EffectiveValue, ValueSource, effective_values
from review.evidence.seals import readable
from review.models import ItemEvent, Override, Rating


class EventKind(StrEnum):
    """Kind of a history event."""

    SCORE = "score"
    INITIAL = "initial"
    FINAL = "final"
    OVERRIDE = "override"
    ADJUDICATION = "adjudication"
    REVERT = "revert"
    FLAG = "flag"
    ESCALATE = "escalate"
    SKIP = "skip"
    UNDO = "undo"


SHOWN_EVENTS = (EventKind.FLAG, EventKind.ESCALATE, EventKind.SKIP, EventKind.UNDO)


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """Line of an answer's history.

    ``metric`` is ``None`` for events about the whole item. ``status`` is the score's, or ``cannot_judge``. ``code`` is
    a failure's reason, a change's reason code or a flag's kind. ``text`` is the explanation, reason or comment.
    ``blind`` is ``None`` if not applicable. ``run_id`` is set for scores, ``user_id`` for events by a user, and
    ``carried`` for a rating of an equal answer."""

    at: datetime
    kind: EventKind
    who: str
    metric: MetricDefinition | None = None
    value: float | None = None
    label: str | None = None
    status: str = ""
    code: str = ""
    text: str = ""
    blind: bool | None = None
    run_id: int | None = None
    user_id: int | None = None
    carried: RatingOrigin | None = None


def answer_history(
    answer: Answer, origins: Collection[RatingOrigin] = (), *, reader: User | None = None
) -> list[HistoryEvent]:
    """History of an answer in all runs over its answer set, oldest first, with carried ratings.

    Of sealed labels, only those of the ``reader`` are included."""
    reader_id = None if reader is None else reader.pk
    events = [
        *_scores(answer),
        *_ratings(answer, origins, reader_id),
        *_overrides(answer, reader_id),
        *_item_events(answer),
    ]
    return sorted(events, key=lambda event: event.at)


def _value_fields(row: Score | Rating | Override) -> dict[str, Any]:
    return {"metric": row.metric, "value": row.value, "label": row.label}


def _scores(answer: Answer) -> Iterator[HistoryEvent]:
    rows = Score.objects.filter(answer=answer).select_related("metric", "judge_version").order_by("pk")
    for row in rows:
        scored = row.status == "scored"
        yield HistoryEvent(
            at=row.created_at,
            kind=EventKind.SCORE,
            who=str(row.judge_version) if row.judge_version else row.author,
            **_value_fields(row),
            status=row.status,
            code="" if scored else row.reason,
            text=row.reason if scored else "",
            run_id=row.run_id,
        )


def _ratings(answer: Answer, origins: Collection[RatingOrigin], reader_id: int | None) -> Iterator[HistoryEvent]:
    origin_by_rating = {pk: origin for origin in origins for pk in origin.ratings}
    rows = Rating.objects.filter(Q(answer=answer) | Q(pk__in=origin_by_rating)).select_related("metric", "reviewer")
    rows = readable(rows, own=Q(reviewer=reader_id) if reader_id else None)
    for row in rows.order_by("pk"):
        yield HistoryEvent(
            at=row.created_at,
            kind=EventKind(row.phase),
            who=row.reviewer.display_name if row.reviewer else row.author,
            user_id=row.reviewer_id,
            **_value_fields(row),
            status="cannot_judge" if row.cannot_judge else "",
            code=row.reason_code,
            text=row.comment,
            blind=row.blind,
            carried=origin_by_rating.get(row.pk),
        )


def _overrides(answer: Answer, reader_id: int | None) -> Iterator[HistoryEvent]:
    rows = Override.objects.filter(answer=answer).select_related("metric", "by")
    for row in readable(rows, own=Q(by=reader_id) if reader_id else None).order_by("pk"):
        yield HistoryEvent(
            at=row.created_at,
            kind=EventKind(row.kind),
            who=row.by.display_name,
            user_id=row.by_id,
            **_value_fields(row),
            text=row.reason,
            blind=not row.judge_seen,
        )


def _item_events(answer: Answer) -> Iterator[HistoryEvent]:
    rows = ItemEvent.objects.filter(assignment__item__answer=answer, verb__in=SHOWN_EVENTS)
    for row in rows.select_related("assignment__reviewer").order_by("pk"):
        yield HistoryEvent(
            at=row.created_at,
            kind=EventKind(row.verb),
            who=row.assignment.reviewer.display_name,
            user_id=row.assignment.reviewer_id,
            code=row.kind,
            text=row.comment,
        )


# The default is the order of the question set.
ORDERS = ("", "category", "-category", "value", "-value")


@dataclass(frozen=True, slots=True)
class AnswerFilter:
    """Filter of answers.

    ``low`` and ``high`` are inclusive limits of the metric's effective value, ``label`` a class, ``source`` the source
    of the value, and ``words`` a text in the question. ``order`` sorts lists: one of :data:`ORDERS`."""

    metric: str = ""
    low: float | None = None
    high: float | None = None
    label: str = ""
    source: str = ""
    category: str = ""
    words: str = ""
    order: str = ""


@dataclass(frozen=True, slots=True)
class SelectedAnswer:
    """Answer with the effective value of the chosen metric; ``None`` if nobody scored or rated it."""

    answer: RunAnswer
    effective: EffectiveValue | None


@dataclass(frozen=True, slots=True)
class AnswerSelection:
    """Matching answers, in the order of the question set. ``metric`` is the chosen one, or else the first."""

    metric: MetricDefinition | None
    metrics: tuple[MetricDefinition, ...]
    categories: tuple[str, ...]
    rows: tuple[SelectedAnswer, ...]

    @property
    def fingerprint(self) -> str:
        """Hash of the matching answers and their values."""
        answer_values = [(row.answer.answer_id, row.effective.value if row.effective else None) for row in self.rows]
        return content_hash([self.metric.pk if self.metric else 0, answer_values])


def select_answers(run: Run, answer_filter: AnswerFilter) -> AnswerSelection:
    """Select the run's answers that match the filter. The number of queries is fixed."""
    values = effective_values(run)
    metrics = tuple(
        sorted(
            values.metrics.values(),
            key=lambda metric_definition: (
                metric_definition.pk not in values.computed,
                metric_definition.name,
                metric_definition.pk,
            ),
        )
    )
    metric = next(
        (metric_definition for metric_definition in metrics if metric_definition.name == answer_filter.metric),
        metrics[0] if metrics else None,
    )
    answers, value_by_answer = run_answers(run), values.values[metric.pk] if metric else {}
    rows = [SelectedAnswer(answer, value_by_answer.get(answer.answer_id)) for answer in answers if not answer.failed]
    categories = tuple(sorted({answer.category for answer in answers if answer.category}))
    return AnswerSelection(metric, metrics, categories, tuple(row for row in rows if _matches(row, answer_filter)))


def restrict_selection(selection: AnswerSelection, answer_ids: Sequence[int]) -> AnswerSelection:
    """Restrict a selection to the given answers."""
    named_ids = set(answer_ids)
    return replace(selection, rows=tuple(row for row in selection.rows if row.answer.answer_id in named_ids))


def _matches(row: SelectedAnswer, answer_filter: AnswerFilter) -> bool:
    effective = row.effective
    if answer_filter.category and row.answer.category != answer_filter.category:
        return False
    if answer_filter.words and answer_filter.words.casefold() not in row.answer.question.casefold():
        return False
    if answer_filter.source and str(effective.source if effective else ValueSource.NONE) != answer_filter.source:
        return False
    if answer_filter.label and (effective is None or effective.label != answer_filter.label):
        return False
    if answer_filter.low is None and answer_filter.high is None:
        return True
    if effective is None or effective.value is None:
        return False
    low, high = answer_filter.low, answer_filter.high
    return (low is None or effective.value >= low) and (high is None or effective.value <= high)
