"""Ratings before the judge is seen: submitting one decision per item, and taking the last one back; or leaving an item
without a rating: the draft is kept, the item is given back, skipped, flagged or escalated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import transaction
from django.db.models import F

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused, UnknownName
from evaluation.models import User
from evaluation.storage.statements import insert
from review.evidence.answers import exposed
from review.evidence.effective import adjudicated
from review.evidence.rating_input import FlagKind, Given, check_comment, part_rows, parts_given, with_figures
from review.models import (
    Assignment,
    Draft,
    ItemEvent,
    QueueMetric,
    Rating,
    RatingPart,
    ReviewItem,
    ReviewQueue,
    SuggestedAnswer,
)
from review.models.statements import CLAIM, STANDING
from review.ratings.leases import lease_end, loaded, regain, renew
from review.ratings.reveals import KEY_LIMIT, check_sender, is_due
from review.ratings.settling import RATED, comes_again, locked, plan_repeat, settle

State = Assignment.State
DRAFT_LIMIT = 200_000  # characters of JSON


def save_draft(assignment: Assignment, payload: Mapping[str, Any]) -> None:
    """Keep what was entered so far, replacing what was kept before.

    ``payload`` is the form's own: ``{"values": {metric: {value, label, cannot_judge, comment, reason_code, parts}},
    "comment": text, "suggestion": text}``. Whoever still holds the item keeps it for the queue's time from now on.

    :raises Refused: ``already_rated``, or ``draft_too_large`` beyond 200,000 characters.
    """
    if Assignment.objects.filter(pk=assignment.pk, state__in=RATED).exists():
        raise Refused("already_rated")
    if len(json.dumps(payload, ensure_ascii=False)) > DRAFT_LIMIT:
        raise Refused("draft_too_large", limit=DRAFT_LIMIT)
    keep(assignment, payload)
    renew(assignment)


def keep(assignment: Assignment, payload: Mapping[str, Any]) -> None:
    """Write the draft without asking for the assignment's state."""
    Draft.objects.bulk_create(
        [Draft(assignment=assignment, payload=dict(payload))],
        update_conflicts=True,
        unique_fields=["assignment"],
        update_fields=["payload", "saved_at"],
    )


def payload_of(values: Mapping[str, Given], comment: str = "", suggestion: str = "") -> dict[str, Any]:
    """A draft that fills the form with these values."""
    held = {metric: given.as_json() for metric, given in values.items()}
    return {"values": held, "comment": comment, "suggestion": suggestion}


def release(assignment: Assignment) -> None:
    """Give the item back; the draft stays, and it may come back to the same person after all others.

    :raises Refused: ``not_held`` when it was rated or passed on.
    """
    with transaction.atomic():
        locked(assignment.item_id)
        _leave(assignment, State.EXPIRED, from_states=[State.LEASED])
        _record(assignment, "release")


def skip(assignment: Assignment, comment: str = "") -> None:
    """Pass the item on to somebody else; it never comes back to this person. Three skips by different people make it
    a lead's matter.

    :raises Refused: ``not_held`` or ``comment_too_long``.
    """
    check_comment(comment)
    with transaction.atomic():
        item = locked(assignment.item_id)
        _leave(assignment, State.SKIPPED)
        _record(assignment, "skip", comment=comment)
        settle(item)


def flag(assignment: Assignment, kind: str, comment: str = "") -> None:
    """Say that something is wrong with the item itself. Before a rating it passes the item on like a skip; after one
    the rating stands beside the flag.

    :raises Refused: ``not_held`` when it was passed on before, or ``comment_too_long``.
    :raises UnknownName: for a kind that is not on the list.
    """
    check_comment(comment)
    if kind not in set(FlagKind):
        raise UnknownName("kind of flag", kind, [known.value for known in FlagKind])
    with transaction.atomic():
        item = locked(assignment.item_id)
        if not _is_rated(assignment):
            _leave(assignment, State.FLAGGED)
        _record(assignment, "flag", kind=kind, comment=comment)
        settle(item)


def escalate(assignment: Assignment, comment: str = "") -> None:
    """Hand the item to a lead: it is in dispute until they decide, whatever it was before.

    :raises Refused: ``not_held`` when it was passed on before, or ``comment_too_long``.
    """
    check_comment(comment)
    with transaction.atomic():
        locked(assignment.item_id)
        if not _is_rated(assignment):
            _leave(assignment, State.FLAGGED)
        _record(assignment, "escalate", comment=comment)
        movable = [ReviewItem.State.OPEN, ReviewItem.State.DONE]
        ReviewItem.objects.filter(pk=assignment.item_id, state__in=movable).update(state=ReviewItem.State.DISPUTED)


def _is_rated(assignment: Assignment) -> bool:
    return Assignment.objects.filter(pk=assignment.pk, state__in=RATED).exists()


def _leave(assignment: Assignment, into: State, from_states: Sequence[State] = (State.LEASED, State.EXPIRED)) -> None:
    """Leave an item one holds, or whose lease one lost; a lost one needs no slot to be passed on."""
    if not Assignment.objects.filter(pk=assignment.pk, state__in=from_states).update(state=into):
        raise Refused("not_held")
    assignment.state = into


def _record(assignment: Assignment, verb: str, *, kind: str = "", comment: str = "") -> None:
    ItemEvent.objects.create(assignment=assignment, verb=verb, kind=kind, comment=comment)


@dataclass(frozen=True, slots=True)
class Submitted:
    """A rating that is in. ``reveal``: the judge is to be shown now. ``item_done``: the item has all its ratings.
    ``repeated``: the same submit had arrived before. ``stale``: the item was withdrawn meanwhile; the rating stands
    for the version that was seen."""

    assignment: Assignment
    reveal: bool
    item_done: bool
    repeated: bool = False
    stale: bool = False


def submit(
    assignment: Assignment,
    values: Mapping[str, Given],
    *,
    idempotency_key: str,
    by: User,
    active_ms: int | None = None,
    comment: str = "",
    suggestion: str = "",
) -> Submitted:
    """Store the ``initial`` ratings of all metrics the item asks for at once.

    ``idempotency_key`` is the form's: the same key twice is one decision. ``comment`` is about the whole item and goes
    to every metric without one of its own; ``suggestion`` is the answer the expert would have given. A submit after
    the lease lapsed counts unless somebody took the slot.

    :raises Refused: ``slot_taken`` or ``queue_closed`` (what was entered is kept as draft), ``already_rated``,
        ``not_held``, ``not_yours``, ``bad_key``, ``metrics_missing``, ``metrics_unknown``, or what
        :meth:`review.evidence.rating_input.Given.check` and :func:`review.evidence.rating_input.with_figures` refuse.
    """
    check_sender(assignment, by, idempotency_key)
    metrics = asked_of(assignment.item)
    values = with_figures(assignment.item, [row.metric for row in metrics], values)
    _check(metrics, values, comment)
    check_comment(suggestion)
    again = comes_again(assignment)
    due = not again and is_due(assignment, metrics, values)
    try:
        with transaction.atomic():
            done = _submit(assignment, metrics, values, idempotency_key, active_ms, comment, by=by, due=due)
            if again and not done.repeated:
                plan_repeat(assignment)
            if not done.repeated:
                _beside(done, suggestion)
            return done
    except Refused as refused:
        if refused.code in {"slot_taken", "queue_closed"}:
            keep(assignment, payload_of(values, comment, suggestion))
        raise


def undo(assignment: Assignment, *, by: User) -> Assignment:
    """Open the person's last submitted item of the queue again, or one they skipped, with what they had entered.

    The ratings stay; the next submit supersedes them.

    :raises Refused: ``judge_already_seen`` after a reveal or any other look at the judge, ``not_the_last``,
        ``nothing_to_undo``, ``queue_closed``, ``not_yours``, ``already_final`` for an item that was rated again,
        ``adjudicated_already``, or ``slot_taken`` for a skipped item.
    """
    if by.pk != assignment.reviewer_id:
        raise Refused("not_yours")
    queue = assignment.item.queue
    if queue.state != ReviewQueue.State.OPEN:
        raise Refused("queue_closed")
    with transaction.atomic():
        item = locked(assignment.item_id)
        if not regain(assignment, State.SKIPPED):
            _reopen(assignment, queue, by)
        settle(item)
        ItemEvent.objects.create(assignment=assignment, verb="undo")
    return loaded(assignment.pk)


def metrics_of(queue: ReviewQueue) -> list[QueueMetric]:
    """What the queue asks for, in its order; read once in a process, because it is settled with the queue."""
    return list(_metrics(queue.pk, queue.created_at))


def asked_of(item: ReviewItem) -> list[QueueMetric]:
    """What an item is rated by: all its queue asks for, or those whose turn it is."""
    return [row for row in metrics_of(item.queue) if not item.asks or row.metric_id in item.asks]


@lru_cache(maxsize=64)
def _metrics(queue_id: int, _made_at: datetime) -> tuple[QueueMetric, ...]:
    rows = QueueMetric.objects.filter(queue=queue_id).select_related("metric", "rubric_version")
    return tuple(rows.order_by("position", "id"))


def given_in(assignment: Assignment, phase: str = "initial") -> dict[str, Given]:
    """The newest ratings of a phase by metric name; empty when there are none."""
    rows = Rating.objects.filter(assignment=assignment, phase=phase).select_related("metric").order_by("seq")
    return {row.metric.name: as_given(row) for row in rows.prefetch_related("rated_parts")}  # later rows supersede


def as_given(row: Rating) -> Given:
    """A rating as what was given. The reason code of a value that was kept or changed is not part of it."""
    why = row.reason_code if row.cannot_judge else ""
    return Given(row.value, row.label, row.cannot_judge, row.comment, why, parts_given(row))


def suggestion_of(assignment: Assignment) -> str:
    """The answer the reviewer suggested last; empty without one."""
    newest = SuggestedAnswer.objects.filter(assignment=assignment).order_by("-pk").first()
    return newest.text if newest else ""


def _submit(
    assignment: Assignment,
    metrics: Sequence[QueueMetric],
    values: Mapping[str, Given],
    key: str,
    active_ms: int | None,
    comment: str,
    *,
    by: User,
    due: bool,
) -> Submitted:
    queue, item = assignment.item.queue, assignment.item
    keys = {row.metric.name: content_hash([assignment.pk, key, row.metric_id]) for row in metrics}
    row = locked(item.pk)
    if not _claim(assignment, State.SUBMITTED if due else State.FINISHED):
        return _submitted_before(assignment, list(keys.values()))
    ((is_open, judge_seen, last, key_used),) = STANDING.rows(
        queue=queue.pk,
        user=assignment.reviewer_id,
        answer=item.answer_id,
        assignment=assignment.pk,
        keys=list(keys.values()),
    )
    if not is_open:
        raise Refused("queue_closed")
    if key_used:
        raise Refused("bad_key", limit=KEY_LIMIT)
    blind = queue.mode == ReviewQueue.Mode.BLIND and not judge_seen and by.is_themselves
    made = [
        Rating(
            answer_id=item.answer_id,
            metric=row.metric,
            assignment=assignment,
            reviewer_id=assignment.reviewer_id,
            source="review",
            phase="initial",
            blind=blind,
            seq=last + 1,
            value=given.value,
            label=given.label,
            cannot_judge=given.cannot_judge,
            reason_code=given.reason_code,
            comment=given.comment or comment,
            rubric_version_id=row.rubric_version_id,
            active_ms=active_ms,
            idempotency_key=keys[row.metric.name],
            token_id=by.token_id,
        )
        for row in metrics
        for given in [values[row.metric.name]]
    ]
    insert(made)
    RatingPart.objects.bulk_create(
        part for rating in made for part in part_rows(rating, item, values[rating.metric.name].parts)
    )
    done = settle(row)
    return Submitted(assignment, due, done, stale=row.state == ReviewItem.State.WITHDRAWN)


def _beside(done: Submitted, suggestion: str) -> None:
    """What goes with a decision: the suggested answer, and the mark that the item had been withdrawn meanwhile."""
    text = suggestion.strip()
    if text and text != suggestion_of(done.assignment):
        SuggestedAnswer.objects.create(assignment=done.assignment, text=text)
    if done.stale:
        ItemEvent.objects.create(assignment=done.assignment, verb="stale")


def _claim(assignment: Assignment, into: State) -> bool:
    """Turn the lease into a rating, also one that lapsed while its slot is free."""
    return _rated(assignment, into) or (regain(assignment) and _rated(assignment, into))


def _rated(assignment: Assignment, into: State) -> bool:
    if (row := CLAIM.first(assignment=assignment.pk, into=into)) is None:
        return False
    assignment.state = into
    assignment.lease_until, assignment.submitted_at, assignment.slot, assignment.fence = row
    return True


def _submitted_before(assignment: Assignment, keys: Sequence[str]) -> Submitted:
    now = loaded(assignment.pk)
    if now.state not in RATED:
        raise Refused("not_held")
    if not Rating.objects.filter(assignment=now, idempotency_key__in=keys).exists():
        raise Refused("already_rated")
    done = now.item.state == ReviewItem.State.DONE
    stale = now.item.state == ReviewItem.State.WITHDRAWN
    return Submitted(now, now.state == State.SUBMITTED, done, repeated=True, stale=stale)


def _reopen(assignment: Assignment, queue: ReviewQueue, by: User) -> None:
    mine = Assignment.objects.filter(queue=queue, reviewer=by, submitted_at__isnull=False)
    last = mine.order_by("-submitted_at", "-pk").first()
    if last is None or assignment.pk not in mine.values_list("pk", flat=True):
        raise Refused("nothing_to_undo")
    if assignment.pk != last.pk:
        raise Refused("not_the_last")
    if queue.mode == ReviewQueue.Mode.BLIND and exposed(by, assignment.item.answer_id):
        raise Refused("judge_already_seen")
    if Rating.objects.filter(assignment=last, phase="final").exists():
        raise Refused("already_final")
    if adjudicated([assignment.item.answer_id]):
        raise Refused("adjudicated_already")
    row = Assignment.objects.filter(pk=last.pk, state__in=[State.SUBMITTED, State.FINISHED], revealed_at__isnull=True)
    if not row.update(state=State.LEASED, submitted_at=None, lease_until=lease_end(queue), fence=F("fence") + 1):
        raise Refused("judge_already_seen")
    keep(assignment, payload_of(given_in(assignment), suggestion=suggestion_of(assignment)))


def _check(metrics: Sequence[QueueMetric], values: Mapping[str, Given], comment: str) -> None:
    check_comment(comment)
    asked = [row.metric.name for row in metrics]
    if missing := [name for name in asked if name not in values]:
        raise Refused("metrics_missing", metrics=missing)
    if unknown := sorted(set(values) - set(asked)):
        raise Refused("metrics_unknown", metrics=unknown)
    for row in metrics:
        values[row.metric.name].check(row.metric.name, row.metric.read_scale())
