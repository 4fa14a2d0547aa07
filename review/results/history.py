"""The history of an answer: every score, rating, override and flag with who and when, oldest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from evaluation.models import Answer, MetricDefinition, Score
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
    a person of ours said."""

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


def history(answer: Answer) -> list[Event]:
    """Everything said about an answer, in all runs over its answer set, oldest first."""
    events = [*_scores(answer), *_ratings(answer), *_overrides(answer), *_item_events(answer)]
    return sorted(events, key=lambda event: event.at)


def _scores(answer: Answer) -> Iterator[Event]:
    rows = Score.objects.filter(answer=answer).select_related("metric", "judge_version").order_by("pk")
    for row in rows:
        scored = row.status == "scored"
        yield Event(
            at=row.created_at,
            kind=EventKind.SCORE,
            who=str(row.judge_version) if row.judge_version else row.author,
            metric=row.metric,
            value=row.value,
            label=row.label,
            status=row.status,
            code="" if scored else row.reason,
            text=row.reason if scored else "",
            run_id=row.run_id,
        )


def _ratings(answer: Answer) -> Iterator[Event]:
    rows = Rating.objects.filter(answer=answer).select_related("metric", "reviewer").order_by("pk")
    for row in rows:
        yield Event(
            at=row.created_at,
            kind=EventKind(row.phase),
            who=row.reviewer.known_as if row.reviewer else row.author,
            user_id=row.reviewer_id,
            metric=row.metric,
            value=row.value,
            label=row.label,
            status="cannot_judge" if row.cannot_judge else "",
            code=row.reason_code,
            text=row.comment,
            blind=row.blind,
        )


def _overrides(answer: Answer) -> Iterator[Event]:
    for row in Override.objects.filter(answer=answer).select_related("metric", "by").order_by("pk"):
        yield Event(
            at=row.created_at,
            kind=EventKind(row.kind),
            who=row.by.known_as,
            user_id=row.by_id,
            metric=row.metric,
            value=row.value,
            label=row.label,
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
