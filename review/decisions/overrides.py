"""Decisions above judge and ratings: overriding a score of any answer, and taking that back; and one decision about
many answers, the same value with the same reason, each a row of its own that can be reverted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q

from evaluation.accounts import audit
from evaluation.accounts.access import may
from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.judges.shipping import definitions, own_names
from evaluation.models import Answer, MetricDefinition, Run, Score, User
from review.evidence.changes import touch
from review.evidence.effective import standing
from review.evidence.rating_input import check_value
from review.evidence.seals import sealed_answers
from review.models import Assignment, Override, Rating
from review.ratings.settling import RATED

REASON_LIMIT = 10_000  # characters
Kind = Override.Kind


def override(
    answer: Answer,
    metric: MetricDefinition,
    *,
    value: float | None = None,
    label: str | None = None,
    reason: str,
    by: User,
) -> Override:
    """Put an expert's value above everything said before. Any metric may be overridden, rule metrics too.

    :raises PermissionDenied: when the person is neither a lead nor an assigned expert of the answer.
    :raises Refused: ``reason_required``, ``reason_too_long`` (more than 10,000 characters), ``one_value``,
        ``off_scale``, ``adjudicated`` (only a lead overrides an adjudication), or ``changed_meanwhile``.
    """
    text = checked_reason(reason)
    check_value(metric.name, metric.read_scale(), value, label)
    with transaction.atomic():
        rows = _rows(answer, metric, by)
        made = Override(kind=Kind.OVERRIDE, value=value, label=label, reason=text, by=by, token_id=by.token_id)
        return insert_decision(answer, metric, rows, made)


def revert(answer: Answer, metric: MetricDefinition, *, reason: str, by: User) -> Override:
    """Take back the newest override or adjudication that stands; what stood before stands again.

    :raises PermissionDenied: as for :func:`override`.
    :raises Refused: ``nothing_to_revert``, and the reasons' codes of :func:`override`.
    """
    text = checked_reason(reason)
    with transaction.atomic():
        rows = _rows(answer, metric, by)
        if standing(rows) is None:
            raise Refused("nothing_to_revert")
        return insert_decision(
            answer, metric, rows, Override(kind=Kind.REVERT, reason=text, by=by, token_id=by.token_id)
        )


def metric_of(answer: Answer, name: str) -> MetricDefinition:
    """The metric of that name in the version the answer was scored or rated with, else the newest.

    :raises UnknownName: for a name that nothing defines.
    """
    said = Q(Exists(Score.objects.filter(answer=answer, metric=OuterRef("pk"))))
    known = said | Q(Exists(Rating.objects.filter(answer=answer, metric=OuterRef("pk"))))
    return _newest(known, list(Run.objects.filter(answer_set=answer.answer_set_id)), name)


def may_override(user: User, answer: Answer) -> bool:
    """Whether the person is a lead of the project, or an assigned expert: one who rated the answer in a queue."""
    return is_lead(user, answer) or (
        may(user, answer.answer_set.project_id, Action.RATE)
        and Assignment.objects.filter(reviewer=user, item__answer=answer, state__in=RATED).exists()
    )


def is_lead(user: User, answer: Answer) -> bool:
    """Whether the person may override any answer of the project."""
    return may(user, answer.answer_set.project_id, Action.OVERRIDE)


def _rows(answer: Answer, metric: MetricDefinition, by: User) -> list[Override]:
    if not may_override(by, answer):
        raise PermissionDenied
    rows = list(Override.objects.filter(answer=answer, metric=metric).order_by("seq"))
    top = standing(rows)
    if top is not None and top.kind == Kind.ADJUDICATION and not is_lead(by, answer):
        raise Refused("adjudicated")
    return rows


def insert_decision(
    answer: Answer,
    metric: MetricDefinition,
    rows: Sequence[Override],
    made: Override,
) -> Override:
    """Insert the row that follows ``rows``; the unique number refuses the second of two people who decide at once."""
    made.answer, made.metric, made.seq = answer, metric, rows[-1].seq + 1 if rows else 1
    try:
        with transaction.atomic():
            made.save(force_insert=True)
            touch([answer.pk])
    except IntegrityError as error:
        raise Refused("changed_meanwhile") from error
    audit.record(made.by, f"score_{made.kind}", answer, metric=metric.name, override=made.pk)
    return made


def checked_reason(reason: str) -> str:
    """The reason without surrounding white space.

    :raises Refused: ``reason_required`` or ``reason_too_long`` (more than 10,000 characters).
    """
    text = reason.strip()
    if not text:
        raise Refused("reason_required")
    if len(text) > REASON_LIMIT:
        raise Refused("reason_too_long", length=len(text), limit=REASON_LIMIT)
    return text


MOST = 10_000  # answers at once


@dataclass(frozen=True, slots=True)
class Effect:
    """What a decision about many answers does. ``answers`` get the value; of the named ones ``same`` stand there by an
    override already, ``adjudicated`` may be changed by a lead alone, and ``forbidden`` are not the person's."""

    answers: tuple[int, ...]
    same: int
    adjudicated: int
    forbidden: int


def effect_of(
    run: Run,
    metric: MetricDefinition,
    answer_ids: Collection[int],
    *,
    value: float | None = None,
    label: str | None = None,
    by: User,
) -> Effect:
    """What overriding these answers of the run would do, without doing it. Five queries.

    :raises Refused: ``no_answers_chosen``, ``too_many_answers``, ``one_value`` or ``off_scale``.
    """
    check_value(metric.name, metric.read_scale(), value, label)
    if len(answer_ids) > MOST:
        raise Refused("too_many_answers", count=len(answer_ids), limit=MOST)
    rows = Answer.objects.filter(answer_set_id=run.answer_set_id, pk__in=answer_ids, status="ok")
    named = set(rows.values_list("pk", flat=True))
    if not named:
        raise Refused("no_answers_chosen")
    lead = may(by, run.project_id, Action.OVERRIDE)
    mine = named if lead else _rated_by(by, run, named)
    tops = {answer: standing(rows) for answer, rows in _standing_rows(metric, mine).items()}
    decided = {pk: top for pk, top in tops.items() if top is not None}
    settled = {pk for pk, top in decided.items() if top.kind == Kind.ADJUDICATION and not lead}
    # Decisions about sealed answers are replaced whatever they say, so that nobody learns one by offering values.
    sealed = sealed_answers(run.project_id, run.answer_set_id, named)
    alike = {pk for pk, top in decided.items() if (top.value, top.label) == (value, label)} - sealed
    same = {pk for pk in alike if decided[pk].kind == Kind.OVERRIDE}
    return Effect(tuple(sorted(mine - same - settled)), len(same), len(settled), len(named - mine))


def override_many(
    run: Run,
    metric: MetricDefinition,
    answer_ids: Collection[int],
    *,
    value: float | None = None,
    label: str | None = None,
    reason: str,
    by: User,
) -> Effect:
    """Put one value above everything said of these answers, all or nothing.

    :raises PermissionDenied: when the person may override none of them.
    :raises Refused: what :func:`effect_of` refuses, ``reason_required``, ``reason_too_long`` or ``changed_meanwhile``.
    """
    text = checked_reason(reason)
    try:
        with transaction.atomic():
            found = effect_of(run, metric, answer_ids, value=value, label=label, by=by)
            if not found.answers and found.forbidden:
                raise PermissionDenied
            earlier = _standing_rows(metric, set(found.answers))
            made = Override.objects.bulk_create(
                [
                    Override(
                        answer_id=answer,
                        metric=metric,
                        seq=earlier[answer][-1].seq + 1 if earlier[answer] else 1,
                        kind=Kind.OVERRIDE,
                        value=value,
                        label=label,
                        reason=text,
                        by=by,
                        token_id=by.token_id,
                    )
                    for answer in found.answers
                ],
                batch_size=1_000,
            )
            touch(found.answers[:1])
            if made:
                told = {"count": len(made), "answers": content_hash(list(found.answers))}
                audit.record(by, "scores_overridden", run, metric=metric.name, **told)
    except IntegrityError as error:
        raise Refused("changed_meanwhile") from error
    return found


def metric_of_run(run: Run, name: str) -> MetricDefinition:
    """The metric of that name in the version the run was scored with, else the newest.

    :raises UnknownName: for a name that nothing defines.
    """
    return _newest(Q(Exists(Score.objects.filter(run=run, metric=OuterRef("pk")))), [run], name)


def _newest(known: Q, runs: Sequence[Run], name: str) -> MetricDefinition:
    (name,) = own_names(runs, [name])
    return MetricDefinition.objects.filter(known, name=name).order_by("-version").first() or definitions([name])[name]


def _rated_by(user: User, run: Run, answers: set[int]) -> set[int]:
    """The answers the person rated in a queue: of those they are an assigned expert."""
    if not may(user, run.project_id, Action.RATE):
        return set()
    rows = Assignment.objects.filter(
        reviewer=user, item__answer__answer_set_id=run.answer_set_id, state__in=RATED
    ).values_list("item__answer_id", flat=True)
    return answers & set(rows)


def _standing_rows(metric: MetricDefinition, answers: set[int]) -> dict[int, list[Override]]:
    found: dict[int, list[Override]] = {pk: [] for pk in answers}
    for row in Override.objects.filter(metric=metric, answer__in=answers).order_by("answer_id", "seq"):
        found[row.answer_id].append(row)
    return found
