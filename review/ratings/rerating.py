"""Rating an item again after it was finished: a new ``final`` row beside the earlier ones, until a lead has decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused
from evaluation.models import User
from review.evidence.decisions import adjudicated
from review.evidence.rating_input import Change
from review.models import Assignment, ItemEvent, Rating, ReviewQueue
from review.ratings.reveals import checked_changes, differs, final_row, insert_final
from review.ratings.settling import locked
from review.ratings.submitting import KEY_LIMIT


@dataclass(frozen=True, slots=True)
class RatedAgain:
    """``changed`` names the metrics with a new row; none where everything stayed as it was."""

    assignment: Assignment
    changed: tuple[str, ...]
    repeated: bool = False


def standing_ratings(assignment: Assignment) -> dict[str, Rating]:
    """What counts of the reviewer's own now, by metric: the newest final rating, else the newest first one."""
    rows = Rating.objects.filter(assignment=assignment).select_related("metric").prefetch_related("rated_parts")
    found: dict[str, Rating] = {}
    for row in sorted(rows, key=lambda one: (one.phase == "final", one.seq)):
        found[row.metric.name] = row
    return found


def standing_by_assignment(
    assignments: Sequence[Assignment],
) -> tuple[dict[int, dict[str, Rating]], dict[int, frozenset[int]]]:
    """The same for several assignments, by primary key, and the adjudicated metrics by answer. Two queries."""
    rows = Rating.objects.filter(assignment__in=assignments).select_related("metric")
    found: dict[int, dict[str, Rating]] = {}
    for row in sorted(rows, key=lambda one: (one.phase == "final", one.seq)):
        found.setdefault(row.assignment_id or 0, {})[row.metric.name] = row
    return found, adjudicated([one.item.answer_id for one in assignments])


def adjudicated_metrics(assignment: Assignment) -> frozenset[int]:
    """The metrics of the answer that are closed for their raters."""
    answer = assignment.item.answer_id
    return adjudicated([answer]).get(answer, frozenset())


def rate_again(
    assignment: Assignment,
    changes: Mapping[str, Change],
    *,
    by: User,
    idempotency_key: str,
    active_ms: int | None = None,
) -> RatedAgain:
    """Store new final ratings where the value differs from what stands. Agreement still uses the first ones.

    :raises Refused: ``not_yours``, ``not_finished`` before the item was finished, ``queue_closed``,
        ``metrics_unknown``, ``adjudicated_already``, ``bad_key``, or what :func:`review.ratings.reveals.finalise`
        refuses of a change.
    """
    if by.pk != assignment.reviewer_id:
        raise Refused("not_yours")
    if not 0 < len(idempotency_key) <= KEY_LIMIT:
        raise Refused("bad_key", limit=KEY_LIMIT)
    with transaction.atomic():
        locked(assignment.item_id)  # neither an undo nor a lead's decision comes between looking and storing
        return _rate_again(assignment, changes, idempotency_key, active_ms)


def _rate_again(assignment: Assignment, changes: Mapping[str, Change], key: str, active_ms: int | None) -> RatedAgain:
    if not Assignment.objects.filter(pk=assignment.pk, state=Assignment.State.FINISHED).exists():
        raise Refused("not_finished")
    if not ReviewQueue.objects.filter(pk=assignment.item.queue_id, state=ReviewQueue.State.OPEN).exists():
        raise Refused("queue_closed")
    standing = standing_ratings(assignment)
    if unknown := sorted(set(changes) - set(standing)):
        raise Refused("metrics_unknown", metrics=unknown)
    changes = checked_changes(assignment, standing, changes)
    wanted = {name: change for name, change in changes.items() if differs(standing[name], change)}
    closed = adjudicated_metrics(assignment)
    if any(standing[name].metric_id in closed for name in wanted):
        raise Refused("adjudicated_already")
    return _store(assignment, standing, wanted, key, active_ms)


def _store(
    assignment: Assignment,
    standing: Mapping[str, Rating],
    wanted: Mapping[str, Change],
    key: str,
    active_ms: int | None,
) -> RatedAgain:
    rows = [final_row(assignment, standing[name], change, active_ms) for name, change in wanted.items()]
    for row in rows:
        now = standing[row.metric.name]
        row.seq = now.seq + 1 if now.phase == "final" else 1
        row.idempotency_key = content_hash(["again", assignment.pk, key, row.metric_id])
    keys = [row.idempotency_key for row in rows]
    changed = tuple(wanted)
    if Rating.objects.filter(idempotency_key__in=keys).exists():
        return RatedAgain(assignment, changed, repeated=True)
    try:
        with transaction.atomic():
            insert_final(assignment, rows, wanted)
            if rows:
                ItemEvent.objects.create(assignment=assignment, verb="again")
    except IntegrityError as error:
        raise Refused("already_rated") from error
    return RatedAgain(assignment, changed)
