"""A lead's decisions: an authoritative value above the ratings, and rulings on flags and escalations."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction

from evaluation.accounts import audit
from evaluation.accounts.access import may
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.models import Answer, MetricDefinition, User
from review.decisions.cases import RAISED, Why, case_of
from review.decisions.overrides import checked_reason, insert_decision
from review.evidence.answers import REMOVING
from review.evidence.exposures import exposed
from review.evidence.rating_input import check_value
from review.models import EventRuling, ItemEvent, Override, QueueMetric, Rating, ReviewItem
from review.ratings.settling import RATED


def adjudicate(
    answer: Answer,
    metric: MetricDefinition,
    *,
    value: float | None = None,
    label: str | None = None,
    reason: str,
    seen: int | None,
    by: User,
) -> Override:
    """Give the value that counts from now on; the ratings stay. ``seen`` is the number of the newest decision the
    person had in view (0 for none, ``None`` not to say), so that of two leads who decide at once one is told. Whether
    the person had seen the judge is stored with it: only blind adjudications may serve as gold.

    :raises PermissionDenied: for everybody but a lead of the project.
    :raises Refused: ``own_rating`` for who rated it, ``changed_meanwhile``, ``reason_required``, ``reason_too_long``,
        ``one_value`` or ``off_scale``.
    """
    if not may(by, answer.answer_set.project_id, Action.ADJUDICATE):
        raise PermissionDenied
    text = checked_reason(reason)
    check_value(metric.name, metric.read_scale(), value, label)
    with transaction.atomic():
        # Before anything else, as whoever changes a queue does: the audit log is the last that all of them wait for.
        items = list(ReviewItem.objects.filter(answer=answer).select_for_update(no_key=True).order_by("pk"))
        if Rating.objects.filter(answer=answer, metric=metric, reviewer=by).exists():
            raise Refused("own_rating")
        rows = list(Override.objects.filter(answer=answer, metric=metric).order_by("seq"))
        if seen is not None and seen != (rows[-1].seq if rows else 0):
            raise Refused("changed_meanwhile")
        made = insert_decision(
            answer,
            metric,
            Override.Kind.ADJUDICATION,
            rows,
            text,
            by,
            value,
            label,
            judge_seen=exposed(by, answer.pk),
        )
        for item in items:
            settle_case(item)
    return made


def rule_on(event: ItemEvent, *, upheld: bool, reason: str, by: User) -> EventRuling:
    """Uphold or dismiss a flag or an escalation. An upheld flag of a bad question or reference takes the answer out of
    all means and the item out of its queue.

    :raises PermissionDenied: for everybody but a lead of the project.
    :raises Refused: ``not_raised`` for another event, ``own_flag``, ``ruled_already``, or the reason's codes.
    """
    item = event.assignment.item
    if not may(by, item.queue.project_id, Action.ADJUDICATE):
        raise PermissionDenied
    if event.verb not in RAISED:
        raise Refused("not_raised")
    if event.assignment.reviewer_id == by.pk:
        raise Refused("own_flag")
    text = checked_reason(reason)
    try:
        with transaction.atomic():
            if EventRuling.objects.filter(event=event).exists():
                raise Refused("ruled_already")
            made = EventRuling.objects.create(event=event, seq=1, upheld=upheld, reason=text, by=by)
            if upheld and event.kind in REMOVING:
                ReviewItem.objects.filter(pk=item.pk).update(state=ReviewItem.State.WITHDRAWN)
            else:
                settle_case(item, ruled=True)
    except IntegrityError as error:
        raise Refused("ruled_already") from error
    audit.record(by, "flag_ruled", item, event=event.pk, upheld=upheld)
    return made


def settle_case(item: ReviewItem, *, ruled: bool = False) -> None:
    """Take an item out of dispute once nothing about it is open: done where it has its ratings or every metric was
    adjudicated, else open again for others. After a ruling (``ruled``) an item without a rating may be open again."""
    row = ReviewItem.objects.select_for_update(no_key=True, of=("self",)).select_related("queue").get(pk=item.pk)
    if row.state != ReviewItem.State.DISPUTED:
        return
    case = case_of(row)
    if set(case.why) - ({Why.PASSED_ON} if ruled else set()):
        return
    rated = row.assignments.filter(state__in=RATED).count()
    asked = set(QueueMetric.objects.filter(queue=row.queue_id).values_list("metric_id", flat=True))
    done = rated >= row.reviews_needed or asked <= case.adjudicated
    state = ReviewItem.State.DONE if done else ReviewItem.State.OPEN
    ReviewItem.objects.filter(pk=row.pk).update(state=state)
