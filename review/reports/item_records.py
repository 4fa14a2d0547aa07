"""The items of a queue with everything said about them, a batch at a time: what exports are made of.

For who rates in the queue only the own rated items and own ratings: no judge, no value that counts, nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evaluation.core.samples import QuestionSpec
from evaluation.models import Answer, Run, User
from review.evidence.effective import Effective, effective_values
from review.evidence.judged import Key
from review.models import Rating, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.ratings.settling import RATED

BATCH = 200


@dataclass(frozen=True, slots=True)
class GivenRating:
    """One rating that counts: a reviewer's newest of its phase. ``repeat`` marks one of a hidden repeat."""

    metric: str
    reviewer: str
    phase: str
    repeat: bool
    value: float | None
    label: str | None
    cannot_judge: bool
    blind: bool
    reason_code: str
    comment: str
    parts: Any
    at: datetime


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """An item with its question and answer. ``effective`` is by metric, empty for reviewers; ``system`` and ``run`` are
    empty for them where they are hidden."""

    item: int
    state: str
    answer_id: int
    run: int | None
    system: str
    sample: int
    question: QuestionSpec
    answer: str
    contexts: tuple[Mapping[str, Any], ...] | None
    effective: Mapping[str, Effective]
    ratings: tuple[GivenRating, ...]


def metric_names(queue: ReviewQueue) -> list[str]:
    """The queue's metrics in its order."""
    return list(queue.metrics.order_by("position", "pk").values_list("metric__name", flat=True))


def reviewer_names(queue: ReviewQueue, only: User | None = None) -> list[str]:
    """Everybody who may rate or has rated in the queue, by user name; or the one person."""
    if only is not None:
        return [only.get_username()]
    members = set(queue.members.values_list("reviewer__username", flat=True))
    rated = Rating.objects.filter(assignment__item__queue=queue).values_list("reviewer__username", flat=True)
    return sorted(members | set(rated.distinct()))


def item_records(queue: ReviewQueue, only: User | None = None) -> Iterator[ItemRecord]:
    """Every item on its first occasion, in the order of question and answer; memory stays the same however many there
    are. ``only``: as that reviewer may see them."""
    rows = queue.items.filter(occasion=FIRST_OCCASION)
    if only is not None:
        rows = rows.filter(assignments__reviewer=only, assignments__state__in=RATED)
    ids = list(rows.order_by("answer__question__position", "answer_id").values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        yield from _batch(queue, ids[start : start + BATCH], only)


def _batch(queue: ReviewQueue, ids: Sequence[int], only: User | None) -> Iterator[ItemRecord]:
    related = ("answer__question", "answer__answer_set__system_version__system", "run")
    rows = ReviewItem.objects.filter(pk__in=ids).select_related(*related).prefetch_related("answer__contexts")
    items = {item.pk: item for item in rows}
    values = {} if only is not None else _values(items.values())
    ratings = _ratings(queue, [item.answer_id for item in items.values()], only)
    for pk in ids:
        if (item := items.get(pk)) is not None:
            yield _record(queue, item, values, ratings.get(item.answer_id, []), only)


def _record(
    queue: ReviewQueue,
    item: ReviewItem,
    values: Mapping[tuple[int, Key], tuple[str, Effective]],
    ratings: Sequence[GivenRating],
    only: User | None,
) -> ItemRecord:
    answer = item.answer
    hidden = only is not None and queue.hide_system
    own = {name: one for (run, key), (name, one) in values.items() if run == item.run_id and key[0] == answer.pk}
    return ItemRecord(
        item=item.pk,
        state=item.state,
        answer_id=answer.pk,
        run=None if hidden else item.run_id,
        system="" if hidden else str(answer.answer_set.system_version),
        sample=answer.sample,
        question=answer.question.read(),
        answer=answer.text,
        contexts=contexts_of(answer, with_scores=only is None),
        effective=own,
        ratings=tuple(ratings),
    )


def _values(items: Any) -> dict[tuple[int, Key], tuple[str, Effective]]:
    """Run and key -> metric name and value that counts."""
    by_run: dict[Run, set[int]] = {}
    for item in items:
        by_run.setdefault(item.run, set()).add(item.answer_id)
    found = {}
    for run, answers in by_run.items():
        values = effective_values(run, answers)
        for key, one in values.values.items():
            found[run.pk, key] = (values.metrics[key[1]].name, one)
    return found


def _ratings(queue: ReviewQueue, answers: Sequence[int], only: User | None) -> dict[int, list[GivenRating]]:
    """Answer -> its ratings of this queue, the newest of each reviewer, metric, phase and occasion."""
    rows = Rating.objects.filter(assignment__item__queue=queue, answer__in=answers)
    if only is not None:
        rows = rows.filter(reviewer=only)
    newest: dict[tuple[int, int, str], Rating] = {}
    related = ("metric", "reviewer", "assignment__item")
    for row in rows.select_related(*related).prefetch_related("rated_parts").order_by("seq", "pk"):
        newest[row.assignment_id or 0, row.metric_id, row.phase] = row
    found: dict[int, list[GivenRating]] = {}
    for row in newest.values():
        found.setdefault(row.answer_id, []).append(_given(row))
    return found


def _given(row: Rating) -> GivenRating:
    assignment, reviewer = row.assignment, row.reviewer
    return GivenRating(
        metric=row.metric.name,
        reviewer=reviewer.get_username() if reviewer else row.author,
        phase=row.phase,
        repeat=assignment is not None and assignment.item.occasion > FIRST_OCCASION,
        value=row.value,
        label=row.label,
        cannot_judge=row.cannot_judge,
        blind=row.blind,
        reason_code=row.reason_code,
        comment=row.comment,
        parts=row.parts or _parts(row),
        at=row.created_at,
    )


def _parts(row: Rating) -> list[dict[str, Any]] | None:
    shown = ("kind", "text", "verdict", "context", "added")
    return [{name: getattr(part, name) for name in shown} for part in row.rated_parts.all()] or None


def contexts_of(answer: Answer, *, with_scores: bool) -> tuple[Mapping[str, Any], ...] | None:
    """The passages of an answer in the order the system used them; ``None`` where the system does not retrieve."""
    if not answer.retrieves:
        return None
    rows = sorted(answer.contexts.all(), key=lambda row: row.position)
    return tuple(
        {"chunk_id": row.chunk_id, "source": row.source, "text": row.text}
        | ({"score": row.score} if with_scores else {})
        for row in rows
    )
