"""Reveal after a rating: whether the judge is shown, its values, the final rating, and rating a finished item again.

Rating again adds a ``final`` row, until a lead has decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError
from evaluation.models import MetricDefinition, User
from evaluation.profiles.spec import ProfileSpec
from review.evidence.answers import is_sampled, record_exposure
from review.evidence.effective import adjudicated_metrics_by_answer
from review.evidence.invalidation import invalidate_figures
from review.evidence.rating_input import (
    REASON_DISTANCE,
    RatingInput,
    RatingUpdate,
    check_comment,
    check_reason_code,
    check_value,
    crosses_threshold,
    is_rated_by_parts,
    judged_parts,
    part_rows,
    part_verdicts,
    scale_distance,
    with_part_scores,
)
from review.evidence.scorers import CombinedScore, answer_scores
from review.models import Assignment, ItemEvent, QueueMetric, Rating, RatingPart, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.ratings.item_state import lock_item

State = Assignment.State
KEY_LIMIT = 200


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """The judge's value of a metric and the reviewer's first rating (``None`` in assisted mode before the rating).
    ``distance`` is in levels, infinite if a class or yes/no differs. ``parts`` are text and judge's verdict of each
    part."""

    metric: MetricDefinition
    judge_value: CombinedScore | None
    own_rating: Rating | None
    distance: float
    parts: tuple[tuple[str, str], ...] = ()

    @property
    def has_both_values(self) -> bool:
        """Return whether reviewer and judge both gave a value; either may have failed to."""
        return all(
            given is not None and (given.value is not None or bool(given.label))
            for given in (self.judge_value, self.own_rating)
        )


@dataclass(frozen=True, slots=True)
class FinaliseResult:
    """Result of a final rating. ``changed`` names the metrics with a new value."""

    assignment: Assignment
    changed: tuple[str, ...]
    repeated: bool = False


def reveal_is_due(assignment: Assignment, metrics: Sequence[QueueMetric], values: Mapping[str, RatingInput]) -> bool:
    """Return whether the judge is shown after these ratings, by the queue's setting: always, never, or if a metric
    differs by the threshold, and for a seeded random share of the others.

    The judge is never shown for hidden repeats, nor if it gave no value."""
    queue, item = assignment.item.queue, assignment.item
    if item.occasion > FIRST_OCCASION:
        return False
    if queue.reveal == ReviewQueue.Reveal.NEVER or queue.mode == ReviewQueue.Mode.ASSISTED:
        return False
    judge_values = answer_scores(item.run_id, item.answer_id, [row.metric_id for row in metrics])
    metric_values = [(row.metric, judge_values[row.metric_id]) for row in metrics if row.metric_id in judge_values]
    if not any(judge_value.value is not None or judge_value.label is not None for _, judge_value in metric_values):
        return False
    if queue.reveal == ReviewQueue.Reveal.ALWAYS:
        return True
    largest_distance = max(
        scale_distance(metric.read_scale(), values[metric.name], judge_value) for metric, judge_value in metric_values
    )
    is_drawn = is_sampled("reveal", queue.reveal_share, queue.seed, item.pk, assignment.reviewer_id)
    return largest_distance >= queue.reveal_threshold > 0 or is_drawn


def reveal(assignment: Assignment) -> list[JudgeComparison]:
    """Reveal the judge after the rating; repeated calls return equal results.

    :raises DomainError: ``not_rated_yet``, or ``not_revealed`` if the queue does not show the judge for this item."""
    with transaction.atomic():
        submitted_assignments = Assignment.objects.filter(
            pk=assignment.pk, state=State.SUBMITTED, revealed_at__isnull=True
        )
        if submitted_assignments.update(state=State.REVEALED, revealed_at=Now()):
            record_exposure(assignment.reviewer, assignment.item.answer, "reveal")
            ItemEvent.objects.create(assignment=assignment, verb="reveal")
    assignment.refresh_from_db(fields=["state", "revealed_at", "submitted_at"])
    if assignment.revealed_at is None:
        raise DomainError("not_rated_yet" if assignment.submitted_at is None else "not_revealed")
    return judge_comparisons(assignment)


def judge_comparisons(assignment: Assignment) -> list[JudgeComparison]:
    """The judge's values by metric. Call only for people who may see them: after a reveal, or in assisted mode."""
    metric_values = _judge_values(assignment.item)
    own_ratings = _newest_ratings(assignment, "initial")
    return [
        _compare(assignment.item, metric, judge_value, own_ratings.get(metric.pk))
        for metric, judge_value in metric_values
    ]


def comparisons_for_item(item: ReviewItem) -> list[JudgeComparison]:
    """The judge's values of an item without a reviewer, for those who decided on it."""
    return [JudgeComparison(metric, judge_value, None, 0.0) for metric, judge_value in _judge_values(item)]


def _judge_values(item: ReviewItem) -> list[tuple[MetricDefinition, CombinedScore | None]]:
    rows = item.queue.metrics.select_related("metric").order_by("position", "id")
    metrics = [row.metric for row in rows if not item.metric_ids or row.metric_id in item.metric_ids]
    judge_values = answer_scores(item.run_id, item.answer_id, [metric.pk for metric in metrics])
    return [(metric, judge_values.get(metric.pk)) for metric in metrics]


def finalise(
    assignment: Assignment, changes: Mapping[str, RatingUpdate] | None = None, *, by: User, active_ms: int | None = None
) -> FinaliseResult:
    """Store a ``final`` rating of every metric, unchanged if ``changes`` has no new value for it. Repeating a decision
    has no effect.

    :raises DomainError: ``not_yours``, ``not_rated_yet``, ``not_revealed``, ``already_final`` (with another decision),
    ``metrics_unknown``, ``reason_needed`` if a value moved two levels or crossed the threshold, ``unknown_reason``, or
    a value off the scale."""
    if by.pk != assignment.reviewer_id:
        raise DomainError("not_yours")
    changes = changes or {}
    first_ratings = _newest_ratings(assignment, "initial")
    ratings_by_name = {rating.metric.name: rating for rating in first_ratings.values()}
    if unknown_names := sorted(set(changes) - set(ratings_by_name)):
        raise DomainError("metrics_unknown", metrics=unknown_names)
    changes = checked_changes(assignment, ratings_by_name, changes)
    final_ratings = [
        final_row(assignment, rating, changes.get(rating.metric.name, RatingUpdate()), active_ms, by)
        for rating in first_ratings.values()
    ]
    changed = tuple(name for name, change in changes.items() if differs(ratings_by_name[name], change))
    with transaction.atomic():
        revealed = Assignment.objects.filter(pk=assignment.pk, state=State.REVEALED)
        if revealed.update(state=State.FINISHED):
            insert_final(assignment, final_ratings, changes)
            assignment.state = State.FINISHED
            return FinaliseResult(assignment, changed)
    return _repeated_finalise(assignment, final_ratings, changed)


def checked_changes(
    assignment: Assignment, ratings_by_name: Mapping[str, Rating], changes: Mapping[str, RatingUpdate]
) -> dict[str, RatingUpdate]:
    """Check the changes by metric, and compute the values of those made by parts.

    :raises DomainError: as :func:`finalise`."""
    thresholds = ProfileSpec.model_validate(assignment.item.run.profile_version.spec).thresholds
    completed_changes = {
        name: _with_figure(assignment, ratings_by_name[name].metric, change) for name, change in changes.items()
    }
    for name, change in completed_changes.items():
        _check_change(ratings_by_name[name], change, thresholds.get(name))
    return completed_changes


def insert_final(assignment: Assignment, rows: Sequence[Rating], changes: Mapping[str, RatingUpdate]) -> None:
    """Store final ratings with their parts: the changed ones, else those of the first rating."""
    Rating.objects.bulk_create(rows)
    invalidate_figures([assignment.item.answer_id])
    first_ratings = {rating.metric_id: rating for rating in _newest_ratings(assignment, "initial").values()}
    RatingPart.objects.bulk_create(
        part
        for row in rows
        for part in part_rows(
            row,
            assignment.item,
            changes.get(row.metric.name, RatingUpdate()).parts or part_verdicts(first_ratings[row.metric_id]),
        )
    )


def _with_figure(assignment: Assignment, metric: MetricDefinition, change: RatingUpdate) -> RatingUpdate:
    if change.keeps_first:
        return change
    metric_input = RatingInput(change.value, change.label, parts=change.parts)
    return replace(
        change, value=with_part_scores(assignment.item, [metric], {metric.name: metric_input})[metric.name].value
    )


def _repeated_finalise(
    assignment: Assignment, final_ratings: Sequence[Rating], changed: tuple[str, ...]
) -> FinaliseResult:
    assignment.refresh_from_db(fields=["state", "revealed_at", "submitted_at"])
    if assignment.revealed_at is None:
        raise DomainError("not_rated_yet" if assignment.submitted_at is None else "not_revealed")
    stored = _newest_ratings(assignment, "final")
    is_same = all(
        rating.metric_id in stored
        and (rating.value, rating.label) == (stored[rating.metric_id].value, stored[rating.metric_id].label)
        for rating in final_ratings
    )
    if not is_same:
        raise DomainError("already_final")
    return FinaliseResult(assignment, changed, repeated=True)


def final_row(
    assignment: Assignment, first_rating: Rating, change: RatingUpdate, active_ms: int | None, by: User
) -> Rating:
    """Final rating of a metric, unchanged if the change has no new value."""
    return Rating(
        answer_id=first_rating.answer_id,
        metric=first_rating.metric,
        assignment=assignment,
        reviewer_id=first_rating.reviewer_id,
        source="review",
        phase="final",
        blind=False,
        value=first_rating.value if change.keeps_first else change.value,
        label=first_rating.label if change.keeps_first else change.label,
        cannot_judge=first_rating.cannot_judge and change.keeps_first,
        reason_code=change.reason_code,
        comment=change.comment,
        rubric_version_id=first_rating.rubric_version_id,
        active_ms=active_ms,
        idempotency_key=f"final {assignment.pk} {first_rating.metric_id}",
        token_id=by.token_id,
    )


def _check_change(first_rating: Rating, change: RatingUpdate, threshold: float | None) -> None:
    check_comment(change.comment)
    check_reason_code(change.reason_code)
    if change.keeps_first:
        return
    scale, name = first_rating.metric.read_scale(), first_rating.metric.name
    check_value(name, scale, change.value, change.label)
    needs_reason = scale_distance(scale, first_rating, change) >= REASON_DISTANCE or crosses_threshold(
        threshold, first_rating.value, change.value
    )
    if needs_reason and not change.reason_code:
        raise DomainError("reason_needed", metric=name)


def differs(first_rating: Rating, change: RatingUpdate) -> bool:
    """Return whether the change has another value, or other verdicts on parts."""
    if change.keeps_first:
        return False
    parts_changed = change.parts and set(change.parts) != set(part_verdicts(first_rating))
    return bool(parts_changed) or (first_rating.value, first_rating.label) != (change.value, change.label)


def _newest_ratings(assignment: Assignment, phase: str) -> dict[int, Rating]:
    rows = Rating.objects.filter(assignment=assignment, phase=phase).select_related("metric").order_by("seq")
    return {row.metric_id: row for row in rows}


def _compare(
    item: ReviewItem, metric: MetricDefinition, judge_value: CombinedScore | None, own_rating: Rating | None
) -> JudgeComparison:
    levels_apart = scale_distance(metric.read_scale(), own_rating, judge_value) if own_rating and judge_value else 0.0
    parts = judged_parts(item, metric) if is_rated_by_parts(metric) else []
    return JudgeComparison(
        metric, judge_value, own_rating, levels_apart, tuple((part.text, part.verdict) for part in parts)
    )


def check_sender(assignment: Assignment, by: User, key: str) -> None:
    """Check that the assignment is the user's own and that the idempotency key is usable.

    :raises DomainError: ``not_yours`` or ``bad_key``."""
    if by.pk != assignment.reviewer_id:
        raise DomainError("not_yours")
    if not 0 < len(key) <= KEY_LIMIT:
        raise DomainError("bad_key", limit=KEY_LIMIT)


def current_ratings(assignment: Assignment) -> dict[str, Rating]:
    """The reviewer's current ratings by metric: the newest final rating, else the newest first one."""
    rows = Rating.objects.filter(assignment=assignment).select_related("metric").prefetch_related("rated_parts")
    return {row.metric.name: row for row in sorted(rows, key=_order_key)}


def current_ratings_by_assignment(
    assignments: Sequence[Assignment],
) -> tuple[dict[int, dict[str, Rating]], dict[int, frozenset[int]]]:
    """Current ratings of several assignments by primary key, and the adjudicated metrics by answer. Two queries."""
    rows = Rating.objects.filter(assignment__in=assignments).select_related("metric")
    ratings_by_assignment: dict[int, dict[str, Rating]] = {}
    for row in sorted(rows, key=_order_key):
        ratings_by_assignment.setdefault(row.assignment_id or 0, {})[row.metric.name] = row
    return ratings_by_assignment, adjudicated_metrics_by_answer(
        [assignment.item.answer_id for assignment in assignments]
    )


def _order_key(row: Rating) -> tuple[bool, int]:
    return row.phase == "final", row.seq


def adjudicated_metrics(assignment: Assignment) -> frozenset[int]:
    """Metrics of the answer that a lead has decided, so that raters cannot change them."""
    answer = assignment.item.answer_id
    return adjudicated_metrics_by_answer([answer]).get(answer, frozenset())


def rate_again(
    assignment: Assignment,
    changes: Mapping[str, RatingUpdate],
    *,
    by: User,
    idempotency_key: str,
    active_ms: int | None = None,
) -> FinaliseResult:
    """Store new final ratings for values that differ from the current ones. Agreement still uses the first ratings.

    :raises DomainError: ``not_yours``, ``not_finished``, ``queue_closed``, ``metrics_unknown``,
    ``adjudicated_already``, ``bad_key``, ``key_reused`` if the key stored other values, or as :func:`finalise` for a
    change."""
    check_sender(assignment, by, idempotency_key)
    with transaction.atomic():
        # Lock the item, so that no undo or decision of a lead comes between reading and storing.
        lock_item(assignment.item_id)
        return _rate_again(assignment, changes, idempotency_key, active_ms, by)


def _rate_again(
    assignment: Assignment, changes: Mapping[str, RatingUpdate], key: str, active_ms: int | None, by: User
) -> FinaliseResult:
    if not Assignment.objects.filter(pk=assignment.pk, state=Assignment.State.FINISHED).exists():
        raise DomainError("not_finished")
    if not ReviewQueue.objects.filter(pk=assignment.item.queue_id, state=ReviewQueue.State.OPEN).exists():
        raise DomainError("queue_closed")
    ratings_by_name = current_ratings(assignment)
    if unknown_names := sorted(set(changes) - set(ratings_by_name)):
        raise DomainError("metrics_unknown", metrics=unknown_names)
    changes = checked_changes(assignment, ratings_by_name, changes)
    new_changes = {name: change for name, change in changes.items() if differs(ratings_by_name[name], change)}
    keys = {
        name: content_hash(["again", assignment.pk, key, rating.metric_id]) for name, rating in ratings_by_name.items()
    }
    rows_of_key = Rating.objects.filter(idempotency_key__in=keys.values()).select_related("metric")
    if stored_ratings := list(rows_of_key.prefetch_related("rated_parts")):
        stored_names = {row.metric.name for row in stored_ratings}
        if new_changes.keys() - stored_names or any(_differs_from_stored(row, changes) for row in stored_ratings):
            raise DomainError("key_reused")
        return FinaliseResult(assignment, tuple(sorted(stored_names)), repeated=True)
    decided_metrics = adjudicated_metrics(assignment)
    if any(ratings_by_name[name].metric_id in decided_metrics for name in new_changes):
        raise DomainError("adjudicated_already")
    rows = [final_row(assignment, ratings_by_name[name], change, active_ms, by) for name, change in new_changes.items()]
    for row in rows:
        current_rating = ratings_by_name[row.metric.name]
        row.seq = current_rating.seq + 1 if current_rating.phase == "final" else 1
        row.idempotency_key = keys[row.metric.name]
    try:
        with transaction.atomic():
            insert_final(assignment, rows, new_changes)
            if rows:
                ItemEvent.objects.create(assignment=assignment, verb="again")
    except IntegrityError as error:
        raise DomainError("already_rated") from error
    return FinaliseResult(assignment, tuple(new_changes))


def _differs_from_stored(row: Rating, changes: Mapping[str, RatingUpdate]) -> bool:
    change = changes.get(row.metric.name, RatingUpdate())
    stored_reason = row.reason_code, row.comment
    return change.keeps_first or differs(row, change) or (change.reason_code, change.comment) != stored_reason
