"""Overrides of any score by experts, for one answer or many, and their reversal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from evaluation.accounts import audit
from evaluation.accounts.access import may
from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.judges.shipped import definitions, metric_names
from evaluation.models import Answer, MetricDefinition, Run, Score, User
from review.evidence.effective import standing_decision
from review.evidence.invalidation import invalidate_figures
from review.evidence.rating_input import check_value
from review.evidence.seals import sealed_answers
from review.models import Assignment, Override, Rating, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.ratings.item_state import PASSED, RATED
from review.ratings.leases import available_to

MAX_REASON_CHARS = 10_000
OverrideKind = Override.Kind


def override(
    answer: Answer,
    metric: MetricDefinition,
    *,
    value: float | None = None,
    label: str | None = None,
    reason: str,
    by: User,
) -> Override:
    """Store an expert's value that overrides all earlier ones. Rule metrics can be overridden, too.

    :raises PermissionDenied: for users who are neither a lead nor an assigned expert of the answer.
    :raises DomainError: ``reason_required``, ``reason_too_long`` (more than 10,000 characters), ``one_value``,
        ``off_scale``, ``adjudicated`` (only a lead overrides an adjudication), or ``changed_meanwhile``."""
    text = clean_reason(reason)
    check_value(metric.name, metric.read_scale(), value, label)
    with transaction.atomic():
        rows = _load_decisions(answer, metric, by)
        decision = Override(
            kind=OverrideKind.OVERRIDE, value=value, label=label, reason=text, by=by, token_id=by.token_id
        )
        return insert_decision(answer, metric, rows, decision)


def revert(answer: Answer, metric: MetricDefinition, *, reason: str, by: User) -> Override:
    """Take back the newest current override or adjudication; the one before it applies again.

    :raises PermissionDenied: as for :func:`override`.
    :raises DomainError: ``nothing_to_revert``, and the reason codes of :func:`override`."""
    text = clean_reason(reason)
    with transaction.atomic():
        rows = _load_decisions(answer, metric, by)
        if standing_decision(rows) is None:
            raise DomainError("nothing_to_revert")
        return insert_decision(
            answer, metric, rows, Override(kind=OverrideKind.REVERT, reason=text, by=by, token_id=by.token_id)
        )


def find_metric(answer: Answer, name: str) -> MetricDefinition:
    """Return the metric's version that the answer was scored or rated with, otherwise the newest.

    :raises UnknownName: for an undefined name."""
    has_score = Q(Exists(Score.objects.filter(answer=answer, metric=OuterRef("pk"))))
    used_for_answer = has_score | Q(Exists(Rating.objects.filter(answer=answer, metric=OuterRef("pk"))))
    return _newest_metric(used_for_answer, list(Run.objects.filter(answer_set=answer.answer_set_id)), name)


def may_override(user: User, answer: Answer) -> bool:
    """Return whether the user is a lead of the project, or may override the answer as its rater."""
    return is_lead(user, answer) or (
        may(user, answer.answer_set.project_id, Action.RATE)
        and overridable_by_rater(user).filter(item__answer=answer).exists()
    )


def overridable_by_rater(user: User) -> QuerySet[Assignment]:
    """Rated assignments of the user, whose answers the user may override.

    Left out are those to whose question the user still has to rate another answer: the page of the first one names its
    system and shows its judge, so the other one would no longer be blind."""
    own_assignments = Assignment.objects.filter(item=OuterRef("pk"), reviewer=user, state__in=(*RATED, *PASSED))
    items_to_rate = ReviewItem.objects.filter(
        ~Exists(own_assignments),
        available_to(user.pk),
        answer__question=OuterRef("item__answer__question"),
        occasion=FIRST_OCCASION,
        state=ReviewItem.State.OPEN,
        queue__state=ReviewQueue.State.OPEN,
        queue__members__reviewer=user,
    )
    return Assignment.objects.filter(~Exists(items_to_rate), reviewer=user, state__in=RATED)


def is_lead(user: User, answer: Answer) -> bool:
    return may(user, answer.answer_set.project_id, Action.OVERRIDE)


def _load_decisions(answer: Answer, metric: MetricDefinition, by: User) -> list[Override]:
    """Load the decisions on the answer's metric, oldest first, if the user may add one.

    :raises PermissionDenied: for users who may not override.
    :raises DomainError: ``adjudicated`` if only a lead may override."""
    if not may_override(by, answer):
        raise PermissionDenied
    rows = list(Override.objects.filter(answer=answer, metric=metric).order_by("seq"))
    decision = standing_decision(rows)
    if decision is not None and decision.kind == OverrideKind.ADJUDICATION and not is_lead(by, answer):
        raise DomainError("adjudicated")
    return rows


def insert_decision(
    answer: Answer,
    metric: MetricDefinition,
    rows: Sequence[Override],
    decision: Override,
) -> Override:
    """Insert the row after ``rows``. The unique number refuses concurrent decisions."""
    decision.answer, decision.metric, decision.seq = answer, metric, rows[-1].seq + 1 if rows else 1
    try:
        with transaction.atomic():
            decision.save(force_insert=True)
            invalidate_figures([answer.pk])
    except IntegrityError as error:
        raise DomainError("changed_meanwhile") from error
    audit.record(decision.by, f"score_{decision.kind}", answer, metric=metric.name, override=decision.pk)
    return decision


def clean_reason(reason: str) -> str:
    """Return the reason without surrounding white space.

    :raises DomainError: ``reason_required`` or ``reason_too_long`` (more than 10,000 characters)."""
    text = reason.strip()
    if not text:
        raise DomainError("reason_required")
    if len(text) > MAX_REASON_CHARS:
        raise DomainError("reason_too_long", length=len(text), limit=MAX_REASON_CHARS)
    return text


# Most answers of one bulk override.
MAX_ANSWERS = 10_000


@dataclass(frozen=True, slots=True)
class OverrideEffect:
    """Effect of a bulk override.

    ``answers`` are the ids of answers that get the value. The others are counted: ``same`` already have it by an
    override, ``adjudicated`` may be changed by a lead only, and ``forbidden`` may not be overridden by the user."""

    answers: tuple[int, ...]
    same: int
    adjudicated: int
    forbidden: int


def preview_overrides(
    run: Run,
    metric: MetricDefinition,
    answer_ids: Collection[int],
    *,
    value: float | None = None,
    label: str | None = None,
    by: User,
) -> OverrideEffect:
    """Preview the override of these answers of the run. Five queries.

    :raises DomainError: ``no_answers_chosen``, ``too_many_answers``, ``one_value`` or ``off_scale``."""
    check_value(metric.name, metric.read_scale(), value, label)
    if len(answer_ids) > MAX_ANSWERS:
        raise DomainError("too_many_answers", count=len(answer_ids), limit=MAX_ANSWERS)
    rows = Answer.objects.filter(answer_set_id=run.answer_set_id, pk__in=answer_ids, status="ok")
    eligible_ids = set(rows.values_list("pk", flat=True))
    if not eligible_ids:
        raise DomainError("no_answers_chosen")
    is_lead_of_project = may(by, run.project_id, Action.OVERRIDE)
    allowed_ids = eligible_ids if is_lead_of_project else _answers_rated_by(by, run, eligible_ids)
    newest_decisions = {
        answer_id: standing_decision(rows) for answer_id, rows in _decisions_by_answer(metric, allowed_ids).items()
    }
    decisions = {pk: decision for pk, decision in newest_decisions.items() if decision is not None}
    locked_ids = {
        pk
        for pk, decision in decisions.items()
        if decision.kind == OverrideKind.ADJUDICATION and not is_lead_of_project
    }
    # Sealed answers always count as changed. Otherwise trying values would reveal their decisions.
    sealed_ids = sealed_answers(run.project_id, run.answer_set_id, eligible_ids)
    equal_ids = {
        pk for pk, decision in decisions.items() if (decision.value, decision.label) == (value, label)
    } - sealed_ids
    overridden_ids = {pk for pk in equal_ids if decisions[pk].kind == OverrideKind.OVERRIDE}
    return OverrideEffect(
        tuple(sorted(allowed_ids - overridden_ids - locked_ids)),
        len(overridden_ids),
        len(locked_ids),
        len(eligible_ids - allowed_ids),
    )


def override_many(
    run: Run,
    metric: MetricDefinition,
    answer_ids: Collection[int],
    *,
    value: float | None = None,
    label: str | None = None,
    reason: str,
    by: User,
) -> OverrideEffect:
    """Override these answers with one value, all or nothing.

    :raises PermissionDenied: if the user may override none of them.
    :raises DomainError: the codes of :func:`preview_overrides`, ``reason_required``, ``reason_too_long`` or
        ``changed_meanwhile``."""
    text = clean_reason(reason)
    try:
        with transaction.atomic():
            effect = preview_overrides(run, metric, answer_ids, value=value, label=label, by=by)
            if not effect.answers and effect.forbidden:
                raise PermissionDenied
            earlier_decisions = _decisions_by_answer(metric, set(effect.answers))
            overrides = Override.objects.bulk_create(
                [
                    Override(
                        answer_id=answer_id,
                        metric=metric,
                        seq=earlier_decisions[answer_id][-1].seq + 1 if earlier_decisions[answer_id] else 1,
                        kind=OverrideKind.OVERRIDE,
                        value=value,
                        label=label,
                        reason=text,
                        by=by,
                        token_id=by.token_id,
                    )
                    for answer_id in effect.answers
                ],
                batch_size=1_000,
            )
            invalidate_figures(effect.answers[:1])
            if overrides:
                details = {"count": len(overrides), "answers": content_hash(list(effect.answers))}
                audit.record(by, "scores_overridden", run, metric=metric.name, **details)
    except IntegrityError as error:
        raise DomainError("changed_meanwhile") from error
    return effect


def find_run_metric(run: Run, name: str) -> MetricDefinition:
    """Return the metric's version that the run was scored with, otherwise the newest.

    :raises UnknownName: for an undefined name."""
    return _newest_metric(Q(Exists(Score.objects.filter(run=run, metric=OuterRef("pk")))), [run], name)


def _newest_metric(condition: Q, runs: Sequence[Run], name: str) -> MetricDefinition:
    (name,) = metric_names(runs, [name])
    return (
        MetricDefinition.objects.filter(condition, name=name).order_by("-version").first() or definitions([name])[name]
    )


def _answers_rated_by(user: User, run: Run, answers: set[int]) -> set[int]:
    """Return the answers that the user rated in a queue."""
    if not may(user, run.project_id, Action.RATE):
        return set()
    rows = overridable_by_rater(user).filter(item__answer__answer_set_id=run.answer_set_id)
    return answers & set(rows.values_list("item__answer_id", flat=True))


def _decisions_by_answer(metric: MetricDefinition, answers: set[int]) -> dict[int, list[Override]]:
    by_answer: dict[int, list[Override]] = {pk: [] for pk in answers}
    for row in Override.objects.filter(metric=metric, answer__in=answers).order_by("answer_id", "seq"):
        by_answer[row.answer_id].append(row)
    return by_answer
