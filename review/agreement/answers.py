"""What was said of answers: the history of one, every score, rating, override and flag with who and when; and a run's
answers narrowed down by it, for lists and for decisions about many at once."""

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
from review.evidence.carried import Origin
from review.evidence.effective import Effective, Source, effective_values
from review.evidence.seals import readable
from review.models import ItemEvent, Override, Rating


class EventKind(StrEnum):
    """What happened."""

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
class Event:
    """One line of the history. ``metric`` is ``None`` for what concerns the whole item. ``status`` is the score's, or
    ``cannot_judge``; ``code`` a failure's reason, a change's reason code or a flag's kind; ``text`` the explanation,
    reason or comment. ``blind`` is ``None`` where it means nothing. ``run_id`` is set for scores, ``user_id`` for what
    a person of ours said, ``carried`` for a rating of an equal answer."""

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
    carried: Origin | None = None


def history(answer: Answer, origins: Collection[Origin] = (), *, reader: User | None = None) -> list[Event]:
    """Everything said about an answer, in all runs over its answer set, oldest first, with the ratings of equal answers
    that count for it. Of sealed labels those of the ``reader`` alone."""
    own = None if reader is None else reader.pk
    events = [*_scores(answer), *_ratings(answer, origins, own), *_overrides(answer, own), *_item_events(answer)]
    return sorted(events, key=lambda event: event.at)


def _value_of(row: Score | Rating | Override) -> dict[str, Any]:
    return {"metric": row.metric, "value": row.value, "label": row.label}


def _scores(answer: Answer) -> Iterator[Event]:
    rows = Score.objects.filter(answer=answer).select_related("metric", "judge_version").order_by("pk")
    for row in rows:
        scored = row.status == "scored"
        yield Event(
            at=row.created_at,
            kind=EventKind.SCORE,
            who=str(row.judge_version) if row.judge_version else row.author,
            **_value_of(row),
            status=row.status,
            code="" if scored else row.reason,
            text=row.reason if scored else "",
            run_id=row.run_id,
        )


def _ratings(answer: Answer, origins: Collection[Origin], reader: int | None) -> Iterator[Event]:
    equal = {pk: origin for origin in origins for pk in origin.ratings}
    rows = Rating.objects.filter(Q(answer=answer) | Q(pk__in=equal)).select_related("metric", "reviewer")
    rows = readable(rows, own=Q(reviewer=reader) if reader else None)
    for row in rows.order_by("pk"):
        yield Event(
            at=row.created_at,
            kind=EventKind(row.phase),
            who=row.reviewer.known_as if row.reviewer else row.author,
            user_id=row.reviewer_id,
            **_value_of(row),
            status="cannot_judge" if row.cannot_judge else "",
            code=row.reason_code,
            text=row.comment,
            blind=row.blind,
            carried=equal.get(row.pk),
        )


def _overrides(answer: Answer, reader: int | None) -> Iterator[Event]:
    rows = Override.objects.filter(answer=answer).select_related("metric", "by")
    for row in readable(rows, own=Q(by=reader) if reader else None).order_by("pk"):
        yield Event(
            at=row.created_at,
            kind=EventKind(row.kind),
            who=row.by.known_as,
            user_id=row.by_id,
            **_value_of(row),
            text=row.reason,
            blind=not row.judge_seen,
        )


def _item_events(answer: Answer) -> Iterator[Event]:
    rows = ItemEvent.objects.filter(assignment__item__answer=answer, verb__in=SHOWN_EVENTS)
    for row in rows.select_related("assignment__reviewer").order_by("pk"):
        yield Event(
            at=row.created_at,
            kind=EventKind(row.verb),
            who=row.assignment.reviewer.known_as,
            user_id=row.assignment.reviewer_id,
            code=row.kind,
            text=row.comment,
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for; ``low`` and ``high`` are inclusive ends of the metric's value that counts, ``label`` a class,
    ``source`` whose value counts, ``words`` stand in the question."""

    metric: str = ""
    low: float | None = None
    high: float | None = None
    label: str = ""
    source: str = ""
    category: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Selected:
    """An answer with the value of the chosen metric that counts; ``None`` where nobody scored or rated it."""

    answer: RunAnswer
    effective: Effective | None


@dataclass(frozen=True, slots=True)
class Selection:
    """The answers that match, in the order of the question set. ``metric`` is the chosen one, else the first."""

    metric: MetricDefinition | None
    metrics: tuple[MetricDefinition, ...]
    categories: tuple[str, ...]
    rows: tuple[Selected, ...]

    @property
    def mark(self) -> str:
        """What tells whether the same answers match, with the same values."""
        said = [(one.answer.answer_id, one.effective.value if one.effective else None) for one in self.rows]
        return content_hash([self.metric.pk if self.metric else 0, said])


def select(run: Run, wanted: Wanted) -> Selection:
    """The run's answers that match. Seven queries, whatever there is."""
    values = effective_values(run)
    metrics = tuple(sorted(values.metrics.values(), key=lambda one: (one.pk not in values.computed, one.name, one.pk)))
    metric = next((one for one in metrics if one.name == wanted.metric), metrics[0] if metrics else None)
    answers, said = run_answers(run), values.values[metric.pk] if metric else {}
    rows = [Selected(answer, said.get(answer.answer_id)) for answer in answers if not answer.failed]
    categories = tuple(sorted({answer.category for answer in answers if answer.category}))
    return Selection(metric, metrics, categories, tuple(row for row in rows if _matches(row, wanted)))


def narrowed(found: Selection, answer_ids: Sequence[int]) -> Selection:
    """Of a selection the named answers alone."""
    named = set(answer_ids)
    return replace(found, rows=tuple(row for row in found.rows if row.answer.answer_id in named))


def _matches(row: Selected, wanted: Wanted) -> bool:
    one = row.effective
    if wanted.category and row.answer.category != wanted.category:
        return False
    if wanted.words and wanted.words.casefold() not in row.answer.question.casefold():
        return False
    if wanted.source and str(one.source if one else Source.NONE) != wanted.source:
        return False
    if wanted.label and (one is None or one.label != wanted.label):
        return False
    if wanted.low is None and wanted.high is None:
        return True
    if one is None or one.value is None:
        return False
    low, high = wanted.low, wanted.high
    return (low is None or one.value >= low) and (high is None or one.value <= high)
