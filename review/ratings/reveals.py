"""After a rating is in: whether the judge is shown, what it said, what the reviewer makes of it, and rating an item
again after it was finished: a new ``final`` row beside the earlier ones, until a lead has decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused
from evaluation.models import MetricDefinition, User
from evaluation.profiles.spec import ProfileSpec
from review.evidence.answers import by_chance, expose_item
from review.evidence.changes import touch
from review.evidence.effective import adjudicated
from review.evidence.rating_input import (
    MOVED,
    Change,
    Given,
    check_comment,
    check_reason_code,
    check_value,
    distance,
    flips,
    is_by_parts,
    judged_parts,
    part_rows,
    parts_given,
    with_figures,
)
from review.evidence.scorers import MachineValue, answer_values
from review.models import Assignment, ItemEvent, QueueMetric, Rating, RatingPart, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.ratings.settling import locked

State = Assignment.State
KEY_LIMIT = 200


@dataclass(frozen=True, slots=True)
class JudgeSaid:
    """What the judge said about one metric, beside what the reviewer said first (``None`` in assisted mode before the
    rating). ``distance`` is in levels, infinite where a class or yes/no differs. ``parts`` are the judge's verdicts on
    the parts of a metric that is rated by them: text and verdict."""

    metric: MetricDefinition
    said: MachineValue | None
    own: Rating | None
    distance: float
    parts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Finalised:
    """What stands after a last word. ``changed`` names the metrics whose value was changed; none where everything
    stayed as it was."""

    assignment: Assignment
    changed: tuple[str, ...]
    repeated: bool = False


def is_due(assignment: Assignment, metrics: Sequence[QueueMetric], values: Mapping[str, Given]) -> bool:
    """Whether the judge is to be shown after these values, by the queue's setting: always, never, or where one metric
    differs by the stated distance, and for a seeded random share of the others. Where the judge gave no value at all
    there is nothing to show; nor is it shown for hidden repeats."""
    queue, item = assignment.item.queue, assignment.item
    if item.occasion > FIRST_OCCASION:
        return False
    if queue.reveal == ReviewQueue.Reveal.NEVER or queue.mode == ReviewQueue.Mode.ASSISTED:
        return False
    said = answer_values(item.run_id, item.answer_id, [row.metric_id for row in metrics])
    shown = [(row.metric, said[row.metric_id]) for row in metrics if row.metric_id in said]
    if not any(one.value is not None or one.label is not None for _, one in shown):
        return False
    if queue.reveal == ReviewQueue.Reveal.ALWAYS:
        return True
    apart = max(distance(metric.read_scale(), values[metric.name], one) for metric, one in shown)
    chance = by_chance("reveal", queue.reveal_share, queue.seed, item.pk, assignment.reviewer_id)
    return apart >= queue.reveal_threshold > 0 or chance


def reveal(assignment: Assignment) -> list[JudgeSaid]:
    """Show the judge after the rating, once and for all; asking again gives the same.

    :raises Refused: ``not_rated_yet``, or ``not_revealed`` where the queue does not show the judge for this item.
    """
    with transaction.atomic():
        rated = Assignment.objects.filter(pk=assignment.pk, state=State.SUBMITTED, revealed_at__isnull=True)
        if rated.update(state=State.REVEALED, revealed_at=Now()):
            expose_item(assignment.reviewer, assignment.item.answer, "reveal")
            ItemEvent.objects.create(assignment=assignment, verb="reveal")
    assignment.refresh_from_db(fields=["state", "revealed_at", "submitted_at"])
    if assignment.revealed_at is None:
        raise Refused("not_rated_yet" if assignment.submitted_at is None else "not_revealed")
    return judge_said(assignment)


def judge_said(assignment: Assignment) -> list[JudgeSaid]:
    """What the judge said, metric by metric. Only for people who may see it: after a reveal, or in assisted mode."""
    said = _said(assignment.item)
    own = _newest(assignment, "initial")
    return [_beside(assignment.item, metric, one, own.get(metric.pk)) for metric, one in said]


def said_of_item(item: ReviewItem) -> list[JudgeSaid]:
    """The same for an item without a reviewer beside it: for who decided on it."""
    return [JudgeSaid(metric, one, None, 0.0) for metric, one in _said(item)]


def _said(item: ReviewItem) -> list[tuple[MetricDefinition, MachineValue | None]]:
    rows = item.queue.metrics.select_related("metric").order_by("position", "id")
    metrics = [row.metric for row in rows if not item.asks or row.metric_id in item.asks]
    said = answer_values(item.run_id, item.answer_id, [metric.pk for metric in metrics])
    return [(metric, said.get(metric.pk)) for metric in metrics]


def finalise(
    assignment: Assignment, changes: Mapping[str, Change] | None = None, *, by: User, active_ms: int | None = None
) -> Finalised:
    """Store a ``final`` rating of every metric: kept where ``changes`` has no new value for it. Repeating the same
    decision is harmless.

    :raises Refused: ``not_yours``, ``not_rated_yet``, ``not_revealed``, ``already_final`` (with another decision),
        ``metrics_unknown``, ``reason_needed`` where a value moved two levels or crossed the threshold,
        ``unknown_reason``, or a value off the scale.
    """
    if by.pk != assignment.reviewer_id:
        raise Refused("not_yours")
    changes = changes or {}
    first = _newest(assignment, "initial")
    known = {rating.metric.name: rating for rating in first.values()}
    if unknown := sorted(set(changes) - set(known)):
        raise Refused("metrics_unknown", metrics=unknown)
    changes = checked_changes(assignment, known, changes)
    final = [
        final_row(assignment, rating, changes.get(rating.metric.name, Change()), active_ms, by)
        for rating in first.values()
    ]
    changed = tuple(name for name, change in changes.items() if differs(known[name], change))
    with transaction.atomic():
        seen = Assignment.objects.filter(pk=assignment.pk, state=State.REVEALED)
        if seen.update(state=State.FINISHED):
            insert_final(assignment, final, changes)
            assignment.state = State.FINISHED
            return Finalised(assignment, changed)
    return _finalised_before(assignment, final, changed)


def checked_changes(
    assignment: Assignment, standing: Mapping[str, Rating], changes: Mapping[str, Change]
) -> dict[str, Change]:
    """The changes by metric, those made by parts with the formula's figure, all of them allowed.

    :raises Refused: what :func:`finalise` names.
    """
    thresholds = ProfileSpec.model_validate(assignment.item.run.profile_version.spec).thresholds
    found = {name: _with_figure(assignment, standing[name].metric, change) for name, change in changes.items()}
    for name, change in found.items():
        _check_change(standing[name], change, thresholds.get(name))
    return found


def insert_final(assignment: Assignment, rows: Sequence[Rating], changes: Mapping[str, Change]) -> None:
    """Store final ratings with their parts: the changed ones, else those of the first rating."""
    Rating.objects.bulk_create(rows)
    touch([assignment.item.answer_id])
    first = {rating.metric_id: rating for rating in _newest(assignment, "initial").values()}
    RatingPart.objects.bulk_create(
        part
        for row in rows
        for part in part_rows(
            row,
            assignment.item,
            changes.get(row.metric.name, Change()).parts or parts_given(first[row.metric_id]),
        )
    )


def _with_figure(assignment: Assignment, metric: MetricDefinition, change: Change) -> Change:
    if change.keeps:
        return change
    given = Given(change.value, change.label, parts=change.parts)
    return replace(change, value=with_figures(assignment.item, [metric], {metric.name: given})[metric.name].value)


def _finalised_before(assignment: Assignment, wanted: Sequence[Rating], changed: tuple[str, ...]) -> Finalised:
    assignment.refresh_from_db(fields=["state", "revealed_at", "submitted_at"])
    if assignment.revealed_at is None:
        raise Refused("not_rated_yet" if assignment.submitted_at is None else "not_revealed")
    stored = _newest(assignment, "final")
    same = all(
        rating.metric_id in stored
        and (rating.value, rating.label) == (stored[rating.metric_id].value, stored[rating.metric_id].label)
        for rating in wanted
    )
    if not same:
        raise Refused("already_final")
    return Finalised(assignment, changed, repeated=True)


def final_row(assignment: Assignment, first: Rating, change: Change, active_ms: int | None, by: User) -> Rating:
    """The final row of a metric: kept where the change holds no new value."""
    return Rating(
        answer_id=first.answer_id,
        metric=first.metric,
        assignment=assignment,
        reviewer_id=first.reviewer_id,
        source="review",
        phase="final",
        blind=False,
        value=first.value if change.keeps else change.value,
        label=first.label if change.keeps else change.label,
        cannot_judge=first.cannot_judge and change.keeps,
        reason_code=change.reason_code,
        comment=change.comment,
        rubric_version_id=first.rubric_version_id,
        active_ms=active_ms,
        idempotency_key=f"final {assignment.pk} {first.metric_id}",
        token_id=by.token_id,
    )


def _check_change(first: Rating, change: Change, threshold: float | None) -> None:
    check_comment(change.comment)
    check_reason_code(change.reason_code)
    if change.keeps:
        return
    scale, name = first.metric.read_scale(), first.metric.name
    check_value(name, scale, change.value, change.label)
    moved = distance(scale, first, change) >= MOVED or flips(threshold, first.value, change.value)
    if moved and not change.reason_code:
        raise Refused("reason_needed", metric=name)


def differs(first: Rating, change: Change) -> bool:
    """Whether the change gives another value, or other verdicts on the parts."""
    if change.keeps:
        return False
    decided = change.parts and change.parts != parts_given(first)
    return bool(decided) or (first.value, first.label) != (change.value, change.label)


def _newest(assignment: Assignment, phase: str) -> dict[int, Rating]:
    rows = Rating.objects.filter(assignment=assignment, phase=phase).select_related("metric").order_by("seq")
    return {row.metric_id: row for row in rows}


def _beside(item: ReviewItem, metric: MetricDefinition, said: MachineValue | None, own: Rating | None) -> JudgeSaid:
    apart = distance(metric.read_scale(), own, said) if own and said else 0.0
    parts = judged_parts(item, metric) if is_by_parts(metric) else []
    return JudgeSaid(metric, said, own, apart, tuple((part.text, part.verdict) for part in parts))


def check_sender(assignment: Assignment, by: User, key: str) -> None:
    """Refuse what is not the person's own, or has no key that makes it one decision.

    :raises Refused: ``not_yours`` or ``bad_key``.
    """
    if by.pk != assignment.reviewer_id:
        raise Refused("not_yours")
    if not 0 < len(key) <= KEY_LIMIT:
        raise Refused("bad_key", limit=KEY_LIMIT)


def standing_ratings(assignment: Assignment) -> dict[str, Rating]:
    """What counts of the reviewer's own now, by metric: the newest final rating, else the newest first one."""
    rows = Rating.objects.filter(assignment=assignment).select_related("metric").prefetch_related("rated_parts")
    return {row.metric.name: row for row in sorted(rows, key=_when)}


def standing_by_assignment(
    assignments: Sequence[Assignment],
) -> tuple[dict[int, dict[str, Rating]], dict[int, frozenset[int]]]:
    """The same for several assignments, by primary key, and the adjudicated metrics by answer. Two queries."""
    rows = Rating.objects.filter(assignment__in=assignments).select_related("metric")
    found: dict[int, dict[str, Rating]] = {}
    for row in sorted(rows, key=_when):
        found.setdefault(row.assignment_id or 0, {})[row.metric.name] = row
    return found, adjudicated([one.item.answer_id for one in assignments])


def _when(row: Rating) -> tuple[bool, int]:
    return row.phase == "final", row.seq


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
) -> Finalised:
    """Store new final ratings where the value differs from what stands. Agreement still uses the first ones.

    :raises Refused: ``not_yours``, ``not_finished`` before the item was finished, ``queue_closed``,
        ``metrics_unknown``, ``adjudicated_already``, ``bad_key``, or what :func:`review.ratings.reveals.finalise`
        refuses of a change.
    """
    check_sender(assignment, by, idempotency_key)
    with transaction.atomic():
        locked(assignment.item_id)  # neither an undo nor a lead's decision comes between looking and storing
        return _rate_again(assignment, changes, idempotency_key, active_ms, by)


def _rate_again(
    assignment: Assignment, changes: Mapping[str, Change], key: str, active_ms: int | None, by: User
) -> Finalised:
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
    rows = [final_row(assignment, standing[name], change, active_ms, by) for name, change in wanted.items()]
    for row in rows:
        now = standing[row.metric.name]
        row.seq = now.seq + 1 if now.phase == "final" else 1
        row.idempotency_key = content_hash(["again", assignment.pk, key, row.metric_id])
    keys = [row.idempotency_key for row in rows]
    changed = tuple(wanted)
    if Rating.objects.filter(idempotency_key__in=keys).exists():
        return Finalised(assignment, changed, repeated=True)
    try:
        with transaction.atomic():
            insert_final(assignment, rows, wanted)
            if rows:
                ItemEvent.objects.create(assignment=assignment, verb="again")
    except IntegrityError as error:
        raise Refused("already_rated") from error
    return Finalised(assignment, changed)
