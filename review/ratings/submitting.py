"""Ratings before the reveal: draft, submit and undo; or leaving an item without a rating: release, skip, flag,
escalate."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import transaction
from django.db.models import F

from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError, UnknownName
from evaluation.models import User
from evaluation.storage.statements import insert_rows
from review.evidence.answers import was_exposed
from review.evidence.effective import adjudicated_metrics_by_answer
from review.evidence.rating_input import (
    FlagKind,
    RatingInput,
    check_comment,
    part_rows,
    part_verdicts,
    with_part_scores,
)
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
from review.models.statements import CLAIM, SUBMIT_STATE
from review.ratings.item_state import RATED, lock_item, needs_repeat, plan_repeat, update_item_state
from review.ratings.leases import lease_end, load_assignment, regain_lease, renew_lease
from review.ratings.reveals import KEY_LIMIT, check_sender, reveal_is_due

State = Assignment.State
# In characters of JSON.
MAX_DRAFT_LENGTH = 200_000


def save_draft(assignment: Assignment, payload: Mapping[str, Any]) -> None:
    """Store the draft, replacing the one before, and extend an active lease.

    ``payload`` is ``{"values": {metric: {value, label, cannot_judge, comment, reason_code, parts}}, "comment": text,
    "suggestion": text}``.

    :raises DomainError: ``already_rated``, or ``draft_too_large`` beyond 200,000 characters."""
    if Assignment.objects.filter(pk=assignment.pk, state__in=RATED).exists():
        raise DomainError("already_rated")
    if len(json.dumps(payload, ensure_ascii=False)) > MAX_DRAFT_LENGTH:
        raise DomainError("draft_too_large", limit=MAX_DRAFT_LENGTH)
    write_draft(assignment, payload)
    renew_lease(assignment)


def write_draft(assignment: Assignment, payload: Mapping[str, Any]) -> None:
    """Write the draft without checking the assignment's state."""
    Draft.objects.bulk_create(
        [Draft(assignment=assignment, payload=dict(payload))],
        update_conflicts=True,
        unique_fields=["assignment"],
        update_fields=["payload", "saved_at"],
    )


def draft_from_inputs(values: Mapping[str, RatingInput], comment: str = "", suggestion: str = "") -> dict[str, Any]:
    """Draft that fills the form with these values."""
    values_by_metric = {metric: metric_input.as_json() for metric, metric_input in values.items()}
    return {"values": values_by_metric, "comment": comment, "suggestion": suggestion}


def release(assignment: Assignment) -> None:
    """Release the item. The draft stays, and the person may get the item again after all others.

    :raises DomainError: ``not_held`` if it was rated or skipped."""
    with transaction.atomic():
        lock_item(assignment.item_id)
        _leave(assignment, State.EXPIRED, from_states=[State.LEASED])
        _record_event(assignment, "release")


def skip(assignment: Assignment, comment: str = "") -> None:
    """Skip the item: it goes to another reviewer and never returns to this one. Three skips by different people put it
    in dispute.

    :raises DomainError: ``not_held`` or ``comment_too_long``."""
    check_comment(comment)
    with transaction.atomic():
        item = lock_item(assignment.item_id)
        _leave(assignment, State.SKIPPED)
        _record_event(assignment, "skip", comment=comment)
        update_item_state(item)


def flag(assignment: Assignment, kind: str, comment: str = "") -> None:
    """Flag a problem with the item itself. Before a rating this skips the item; after one the rating stays.

    :raises DomainError: ``not_held`` if it was skipped before, or ``comment_too_long``.
    :raises UnknownName: for an unknown kind."""
    check_comment(comment)
    if kind not in set(FlagKind):
        raise UnknownName("kind of flag", kind, [known_kind.value for known_kind in FlagKind])
    with transaction.atomic():
        item = lock_item(assignment.item_id)
        if not _is_rated(assignment):
            _leave(assignment, State.FLAGGED)
        _record_event(assignment, "flag", kind=kind, comment=comment)
        update_item_state(item)


def escalate(assignment: Assignment, comment: str = "") -> None:
    """Escalate the item to a lead: it is in dispute until they decide.

    :raises DomainError: ``not_held`` if it was skipped before, or ``comment_too_long``."""
    check_comment(comment)
    with transaction.atomic():
        lock_item(assignment.item_id)
        if not _is_rated(assignment):
            _leave(assignment, State.FLAGGED)
        _record_event(assignment, "escalate", comment=comment)
        movable = [ReviewItem.State.OPEN, ReviewItem.State.DONE]
        ReviewItem.objects.filter(pk=assignment.item_id, state__in=movable).update(state=ReviewItem.State.DISPUTED)


def _is_rated(assignment: Assignment) -> bool:
    return Assignment.objects.filter(pk=assignment.pk, state__in=RATED).exists()


def _leave(
    assignment: Assignment, new_state: State, from_states: Sequence[State] = (State.LEASED, State.EXPIRED)
) -> None:
    """Leave an item that is leased, or whose lease expired; an expired one needs no slot."""
    if not Assignment.objects.filter(pk=assignment.pk, state__in=from_states).update(state=new_state):
        raise DomainError("not_held")
    assignment.state = new_state


def _record_event(assignment: Assignment, verb: str, *, kind: str = "", comment: str = "") -> None:
    ItemEvent.objects.create(assignment=assignment, verb=verb, kind=kind, comment=comment)


@dataclass(frozen=True, slots=True)
class SubmitResult:
    """Result of a submit. ``reveal``: the judge is to be shown now. ``item_done``: the item has all its ratings.
    ``repeated``: this submit had arrived before. ``stale``: the item was withdrawn meanwhile; the rating counts for
    the version seen."""

    assignment: Assignment
    reveal: bool
    item_done: bool
    repeated: bool = False
    stale: bool = False


def submit(
    assignment: Assignment,
    values: Mapping[str, RatingInput],
    *,
    idempotency_key: str,
    by: User,
    active_ms: int | None = None,
    comment: str = "",
    suggestion: str = "",
) -> SubmitResult:
    """Store the ``initial`` ratings of all metrics of the item at once.

    Two equal submits with one ``idempotency_key`` are one decision; the second with other values is refused.
    ``comment`` is about the whole item and is stored with every metric that has none of its own; ``suggestion`` is the
    expert's own answer. A submit after the lease expired counts unless another reviewer took the slot.

    :raises DomainError: ``slot_taken`` or ``queue_closed`` (the values are kept as draft), ``already_rated``,
    ``key_reused``, ``not_held``,
    ``not_yours``, ``bad_key``, ``metrics_missing``, ``metrics_unknown``, or as
    :meth:`review.evidence.rating_input.RatingInput.check` and :func:`review.evidence.rating_input.with_figures`."""
    check_sender(assignment, by, idempotency_key)
    metrics = item_metrics(assignment.item)
    values = with_part_scores(assignment.item, [row.metric for row in metrics], values)
    _check_inputs(metrics, values, comment)
    check_comment(suggestion)
    has_repeat = needs_repeat(assignment)
    reveal_due = not has_repeat and reveal_is_due(assignment, metrics, values)
    try:
        with transaction.atomic():
            result = _submit(
                assignment, metrics, values, idempotency_key, active_ms, comment, by=by, reveal_due=reveal_due
            )
            if result.repeated and _is_new_suggestion(assignment, suggestion):
                raise DomainError("key_reused")
            if has_repeat and not result.repeated:
                plan_repeat(assignment)
            if not result.repeated:
                _store_suggestion(result, suggestion)
            return result
    except DomainError as error:
        if error.code in {"slot_taken", "queue_closed"}:
            write_draft(assignment, draft_from_inputs(values, comment, suggestion))
        raise


def undo(assignment: Assignment, *, by: User) -> Assignment:
    """Reopen the user's last submitted item of the queue, or a skipped one, with the values entered before. The ratings
    stay; the next submit supersedes them.

    :raises DomainError: ``judge_already_seen`` after a reveal or any other view of the judge, ``not_the_last``,
    ``nothing_to_undo``, ``queue_closed``, ``not_yours``, ``already_final`` for an item that was rated again,
    ``adjudicated_already``, or ``slot_taken`` for a skipped item."""
    if by.pk != assignment.reviewer_id:
        raise DomainError("not_yours")
    queue = assignment.item.queue
    if queue.state != ReviewQueue.State.OPEN:
        raise DomainError("queue_closed")
    with transaction.atomic():
        item = lock_item(assignment.item_id)
        if not regain_lease(assignment, State.SKIPPED):
            _reopen_last(assignment, queue, by)
        update_item_state(item)
        ItemEvent.objects.create(assignment=assignment, verb="undo")
    return load_assignment(assignment.pk)


def queue_metrics(queue: ReviewQueue) -> list[QueueMetric]:
    """Metrics of the queue in order; cached per process, because they never change."""
    return list(_load_queue_metrics(queue.pk, queue.created_at))


def item_metrics(item: ReviewItem) -> list[QueueMetric]:
    """Metrics to rate on an item: all of its queue, or its own where criteria rotate."""
    return [row for row in queue_metrics(item.queue) if not item.metric_ids or row.metric_id in item.metric_ids]


@lru_cache(maxsize=64)
def _load_queue_metrics(queue_id: int, _created_at: datetime) -> tuple[QueueMetric, ...]:
    rows = QueueMetric.objects.filter(queue=queue_id).select_related("metric", "rubric_version")
    return tuple(rows.order_by("position", "id"))


def stored_inputs(assignment: Assignment, phase: str = "initial") -> dict[str, RatingInput]:
    """Newest ratings of a phase by metric name; empty without any."""
    rows = Rating.objects.filter(assignment=assignment, phase=phase).select_related("metric").order_by("seq")
    # Later rows supersede earlier ones.
    return {row.metric.name: to_input(row) for row in rows.prefetch_related("rated_parts")}


def to_input(row: Rating) -> RatingInput:
    """Convert a rating to its input. The reason code of a kept or changed value is not part of it."""
    reason_code = row.reason_code if row.cannot_judge else ""
    return RatingInput(row.value, row.label, row.cannot_judge, row.comment, reason_code, part_verdicts(row))


def last_suggestion(assignment: Assignment) -> str:
    """The reviewer's newest suggested answer; empty without one."""
    newest = SuggestedAnswer.objects.filter(assignment=assignment).order_by("-pk").first()
    return newest.text if newest else ""


def _submit(
    assignment: Assignment,
    metrics: Sequence[QueueMetric],
    values: Mapping[str, RatingInput],
    key: str,
    active_ms: int | None,
    comment: str,
    *,
    by: User,
    reveal_due: bool,
) -> SubmitResult:
    queue, item = assignment.item.queue, assignment.item
    keys = {row.metric.name: content_hash([assignment.pk, key, row.metric_id]) for row in metrics}
    locked_item = lock_item(item.pk)
    if not _claim_rating(assignment, State.SUBMITTED if reveal_due else State.FINISHED):
        return _repeated_submit(assignment, keys, values, comment)
    ((is_open, judge_seen, last_seq, key_used),) = SUBMIT_STATE.rows(
        queue=queue.pk,
        user=assignment.reviewer_id,
        answer=item.answer_id,
        assignment=assignment.pk,
        keys=list(keys.values()),
    )
    if not is_open:
        raise DomainError("queue_closed")
    if key_used:
        raise DomainError("bad_key", limit=KEY_LIMIT)
    blind = queue.mode == ReviewQueue.Mode.BLIND and not judge_seen and by.is_themselves
    ratings = [
        Rating(
            answer_id=item.answer_id,
            metric=row.metric,
            assignment=assignment,
            reviewer_id=assignment.reviewer_id,
            source="review",
            phase="initial",
            blind=blind,
            seq=last_seq + 1,
            value=metric_input.value,
            label=metric_input.label,
            cannot_judge=metric_input.cannot_judge,
            reason_code=metric_input.reason_code,
            comment=metric_input.comment or comment,
            rubric_version_id=row.rubric_version_id,
            active_ms=active_ms,
            idempotency_key=keys[row.metric.name],
            token_id=by.token_id,
        )
        for row in metrics
        for metric_input in [values[row.metric.name]]
    ]
    insert_rows(ratings)
    RatingPart.objects.bulk_create(
        part for rating in ratings for part in part_rows(rating, item, values[rating.metric.name].parts)
    )
    is_done = update_item_state(locked_item)
    return SubmitResult(assignment, reveal_due, is_done, stale=locked_item.state == ReviewItem.State.WITHDRAWN)


def _store_suggestion(result: SubmitResult, suggestion: str) -> None:
    """Store the suggested answer, and a ``stale`` event if the item was withdrawn meanwhile."""
    if _is_new_suggestion(result.assignment, suggestion):
        SuggestedAnswer.objects.create(assignment=result.assignment, text=suggestion.strip())
    if result.stale:
        ItemEvent.objects.create(assignment=result.assignment, verb="stale")


def _is_new_suggestion(assignment: Assignment, suggestion: str) -> bool:
    text = suggestion.strip()
    return bool(text) and text != last_suggestion(assignment)


def _claim_rating(assignment: Assignment, new_state: State) -> bool:
    """Turn the lease into a rating; an expired lease too, if its slot is free."""
    return _mark_rated(assignment, new_state) or (regain_lease(assignment) and _mark_rated(assignment, new_state))


def _mark_rated(assignment: Assignment, new_state: State) -> bool:
    if (row := CLAIM.first(assignment=assignment.pk, into=new_state)) is None:
        return False
    assignment.state = new_state
    assignment.lease_until, assignment.submitted_at, assignment.slot, assignment.fence = row
    return True


def _repeated_submit(
    assignment: Assignment, keys: Mapping[str, str], values: Mapping[str, RatingInput], comment: str
) -> SubmitResult:
    stored_assignment = load_assignment(assignment.pk)
    if stored_assignment.state not in RATED:
        raise DomainError("not_held")
    rows = Rating.objects.filter(assignment=stored_assignment, idempotency_key__in=keys.values())
    stored_ratings = list(rows.select_related("metric").prefetch_related("rated_parts"))
    if not stored_ratings:
        raise DomainError("already_rated")
    if not all(_holds_input(row, stored_assignment.item, values[row.metric.name], comment) for row in stored_ratings):
        raise DomainError("key_reused")
    is_done = stored_assignment.item.state == ReviewItem.State.DONE
    stale = stored_assignment.item.state == ReviewItem.State.WITHDRAWN
    return SubmitResult(
        stored_assignment, stored_assignment.state == State.SUBMITTED, is_done, repeated=True, stale=stale
    )


def _holds_input(row: Rating, item: ReviewItem, metric_input: RatingInput, comment: str) -> bool:
    """Return whether the stored rating is that of this input."""
    expected = replace(metric_input, comment=metric_input.comment or comment, parts=())
    stored = RatingInput(row.value, row.label, row.cannot_judge, row.comment, row.reason_code)
    parts, stored_parts = part_rows(row, item, metric_input.parts), row.rated_parts.all()
    return stored == expected and {_part_content(part) for part in parts} == {
        _part_content(part) for part in stored_parts
    }


def _part_content(part: RatingPart) -> tuple[int, str, str]:
    return part.position, part.text, part.verdict


def _reopen_last(assignment: Assignment, queue: ReviewQueue, by: User) -> None:
    rated_assignments = Assignment.objects.filter(queue=queue, reviewer=by, submitted_at__isnull=False)
    last_rated = rated_assignments.order_by("-submitted_at", "-pk").first()
    if last_rated is None or assignment.pk not in rated_assignments.values_list("pk", flat=True):
        raise DomainError("nothing_to_undo")
    if assignment.pk != last_rated.pk:
        raise DomainError("not_the_last")
    if queue.mode == ReviewQueue.Mode.BLIND and was_exposed(by, assignment.item.answer_id):
        raise DomainError("judge_already_seen")
    if Rating.objects.filter(assignment=last_rated, phase="final").exists():
        raise DomainError("already_final")
    if adjudicated_metrics_by_answer([assignment.item.answer_id]):
        raise DomainError("adjudicated_already")
    row = Assignment.objects.filter(
        pk=last_rated.pk, state__in=[State.SUBMITTED, State.FINISHED], revealed_at__isnull=True
    )
    if not row.update(state=State.LEASED, submitted_at=None, lease_until=lease_end(queue), fence=F("fence") + 1):
        raise DomainError("judge_already_seen")
    write_draft(assignment, draft_from_inputs(stored_inputs(assignment), suggestion=last_suggestion(assignment)))


def _check_inputs(metrics: Sequence[QueueMetric], values: Mapping[str, RatingInput], comment: str) -> None:
    check_comment(comment)
    metric_names = [row.metric.name for row in metrics]
    if missing_names := [name for name in metric_names if name not in values]:
        raise DomainError("metrics_missing", metrics=missing_names)
    if unknown_names := sorted(set(values) - set(metric_names)):
        raise DomainError("metrics_unknown", metrics=unknown_names)
    for row in metrics:
        values[row.metric.name].check(row.metric.name, row.metric.read_scale())
