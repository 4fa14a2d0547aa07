"""Actions of a lead on an open queue (reassign, release, extend, invite, deadline), and reminder e-mails before the
deadline.

Ratings are never changed, and every action is in the audit log. A person gets one reminder for each configured number
of hours: its row is written before the mail is sent. A failed mail is sent again, three tries in all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext

from evaluation.accounts import audit
from evaluation.accounts.mail import send_mail
from evaluation.core.errors import DomainError
from evaluation.models import User
from review.models import Assignment, ItemEvent, QueueMember, Reminder, Reservation, ReviewItem, ReviewQueue
from review.models.queue_spec import SETTINGS
from review.models.queues import FIRST_OCCASION
from review.queues.creation import add_members, check_people
from review.queues.distribution import check_members
from review.queues.progress import own_progress
from review.ratings.item_state import RATED, lock_item, update_item_state
from review.ratings.leases import lease_end

State = Assignment.State


@dataclass(frozen=True, slots=True)
class MoveCounts:
    """Number of items that changed hands (``moved``), and of those that did not because the taker had them before
    (``kept``)."""

    moved: int
    kept: int


def reassign(
    queue: ReviewQueue, giver: User, taker: User, *, by: User | None, items: Collection[int] | None = None
) -> MoveCounts:
    """Give a person's leased and reserved items without a rating to another person; all of them, or some.

    Pooled items are then reserved for the taker and, if they need several people, for all members except the giver.
    Drafts stay with their author.

    :raises DomainError: ``not_a_reviewer`` or ``same_person``."""
    _check_members(queue, [giver, taker])
    if giver.pk == taker.pk:
        raise DomainError("same_person")
    with transaction.atomic():
        rows = _unrated_items(queue, giver)
        unrated_items = list((rows if items is None else rows.filter(pk__in=items)).select_for_update(no_key=True))
        taker_item_ids = set(
            Assignment.objects.filter(item__in=unrated_items, reviewer=taker).values_list("item", flat=True)
        )
        moved_items = [item for item in unrated_items if item.pk not in taker_item_ids]
        _release_leases(Assignment.objects.filter(item__in=moved_items, reviewer=giver))
        _reserve_for(queue, moved_items, giver, taker)
        audit.record(by, "queue_reassigned", queue, items=len(moved_items), giver=giver.pk, taker=taker.pk)
    return MoveCounts(len(moved_items), len(unrated_items) - len(moved_items))


def set_item_reviewers(queue: ReviewQueue, items: Collection[int], people: Sequence[User], *, by: User | None) -> int:
    """Reserve items for exactly these people and those who have rated them; each item then needs that many reviews.
    Returns the number of items.

    :raises DomainError: ``not_a_reviewer``, ``no_reviewers``, or ``setting_range`` for more than ten people."""
    if not people:
        raise DomainError("no_reviewers")
    _check_members(queue, people)
    reviewer_ids = {person.pk for person in people}
    with transaction.atomic():
        rows = queue.items.filter(pk__in=items, occasion=FIRST_OCCASION).exclude(state=ReviewItem.State.WITHDRAWN)
        locked_items = list(rows.select_for_update(no_key=True).order_by("pk"))
        for item in locked_items:
            _set_reviewers(item, reviewer_ids)
        audit.record(by, "queue_people_named", queue, items=len(locked_items), people=sorted(reviewer_ids))
    return len(locked_items)


def release_all(queue: ReviewQueue, reviewer: User, *, by: User | None) -> int:
    """Release all items that a person holds; returns how many."""
    with transaction.atomic():
        assignments = Assignment.objects.filter(queue=queue, reviewer=reviewer)
        # Locked, so that an item that is rated or released meanwhile is not released again.
        count = _release_leases(assignments.select_for_update(no_key=True).order_by("pk"))
        audit.record(by, "queue_released", queue, reviewer=reviewer.pk, items=count)
    return count


def extend_all(queue: ReviewQueue, reviewer: User, *, by: User | None) -> int:
    """Extend all leases of a person from now; returns how many."""
    with transaction.atomic():
        leases = Assignment.objects.filter(queue=queue, reviewer=reviewer, state=State.LEASED)
        count = leases.update(lease_until=lease_end(queue))
        audit.record(by, "queue_extended", queue, reviewer=reviewer.pk, items=count)
    return count


def set_deadline(queue: ReviewQueue, deadline: datetime | None, *, by: User | None) -> None:
    """Set or remove the deadline.

    :raises DomainError: ``deadline_passed`` for a time in the past."""
    if deadline is not None and deadline <= timezone.now():
        raise DomainError("deadline_passed")
    with transaction.atomic():
        ReviewQueue.objects.filter(pk=queue.pk).update(deadline=deadline)
        queue.deadline = deadline
        audit.record(by, "queue_deadline", queue, deadline=deadline.isoformat() if deadline else None)


def invite_reviewers(queue: ReviewQueue, people: Sequence[User], *, by: User | None) -> None:
    """Add members to a queue.

    :raises DomainError: ``no_reviewers`` or ``not_in_project``."""
    check_people(people, queue.project_id)
    with transaction.atomic():
        add_members(queue, people)
        audit.record(by, "queue_people_added", queue, people=sorted(person.pk for person in people))


def _unrated_items(queue: ReviewQueue, user: User) -> QuerySet[ReviewItem]:
    """Open items that are leased by or reserved for the user, neither rated nor skipped; without hidden repeats."""
    own_assignments = Assignment.objects.filter(item=OuterRef("pk"), reviewer=user)
    own_reservations = Reservation.objects.filter(item=OuterRef("pk"), reviewer=user)
    open_items = queue.items.filter(state=ReviewItem.State.OPEN, occasion=FIRST_OCCASION)
    ended_assignments = own_assignments.exclude(state__in=[State.LEASED, State.EXPIRED])
    return open_items.filter(
        Exists(own_assignments.filter(state=State.LEASED)) | (Q(reserved=True) & Exists(own_reservations)),
        ~Exists(ended_assignments),
    ).order_by("pk")


def _release_leases(rows: QuerySet[Assignment]) -> int:
    """Expire the leases among these assignments; returns how many."""
    ids = list(rows.filter(state=State.LEASED).values_list("pk", flat=True))
    Assignment.objects.filter(pk__in=ids).update(state=State.EXPIRED)
    ItemEvent.objects.bulk_create([ItemEvent(assignment_id=pk, verb="release") for pk in ids])
    return len(ids)


def _reserve_for(queue: ReviewQueue, items: Sequence[ReviewItem], giver: User, taker: User) -> None:
    pooled_items = [item for item in items if not item.reserved]
    member_ids = (
        list(queue.members.exclude(reviewer=giver).values_list("reviewer_id", flat=True)) if pooled_items else []
    )
    rows = [Reservation(item=item, reviewer=taker) for item in items]
    rows += [
        Reservation(item=item, reviewer_id=member_id)
        for item in pooled_items
        if item.reviews_needed > 1
        for member_id in member_ids
        if member_id != taker.pk
    ]
    ReviewItem.objects.filter(pk__in=[item.pk for item in pooled_items]).update(reserved=True)
    Reservation.objects.filter(item__in=items, reviewer=giver).delete()
    Reservation.objects.bulk_create(rows, ignore_conflicts=True)


def _set_reviewers(item: ReviewItem, reviewer_ids: set[int]) -> None:
    rows = Assignment.objects.filter(item=item)
    rater_ids = set(rows.filter(state__in=RATED).values_list("reviewer_id", flat=True))
    allowed_ids = reviewer_ids | rater_ids
    SETTINGS["reviews_needed"].check(len(allowed_ids))
    _release_leases(rows.exclude(reviewer__in=allowed_ids))
    Reservation.objects.filter(item=item).exclude(reviewer__in=allowed_ids).delete()
    Reservation.objects.bulk_create(
        [Reservation(item=item, reviewer_id=pk) for pk in sorted(allowed_ids)], ignore_conflicts=True
    )
    ReviewItem.objects.filter(pk=item.pk).update(reserved=True, reviews_needed=len(allowed_ids))
    update_item_state(lock_item(item.pk))


def _check_members(queue: ReviewQueue, people: Sequence[User]) -> None:
    check_members(set(QueueMember.objects.filter(queue=queue).values_list("reviewer_id", flat=True)), people)


MAX_TRIES = 3
# After this time a sender counts as dead.
SENDING_TIMEOUT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ReminderCounts:
    """Result of a round of reminders."""

    sent: int = 0
    failed: int = 0


def remind_all(now: datetime | None = None) -> ReminderCounts:
    """Send all due reminders; nothing without a mail server (``EMAIL_URL``)."""
    if not settings.CONCORD_MAIL:
        return ReminderCounts()
    sent = failed = 0
    for queue, user, hours in _due_reminders(now or timezone.now()):
        reminder = _claim(queue, user, hours)
        if reminder is None:
            continue
        problem = send_mail(user, partial(reminder_mail, queue, user))
        state = Reminder.State.FAILED if problem else Reminder.State.SENT
        Reminder.objects.filter(pk=reminder.pk).update(state=state, problem=problem)
        sent, failed = sent + (not problem), failed + bool(problem)
    return ReminderCounts(sent, failed)


def _due_reminders(now: datetime) -> Iterator[tuple[ReviewQueue, User, int]]:
    """Queues and users to remind, with the smallest configured number of hours that fits, so that nobody gets two
    reminders at once."""
    hours = sorted(settings.CONCORD_REMIND_HOURS)
    if not hours:
        return
    due_queues = ReviewQueue.objects.filter(
        state=ReviewQueue.State.OPEN, deadline__gt=now, deadline__lte=now + timedelta(hours=hours[-1])
    )
    for queue in due_queues:
        hours_before = next(
            number for number in hours if queue.deadline and queue.deadline - now <= timedelta(hours=number)
        )
        for member in queue.members.filter(reviewer__is_active=True).select_related("reviewer"):
            if remaining_items(queue, member.reviewer):
                yield queue, member.reviewer, hours_before


def remaining_items(queue: ReviewQueue, user: User) -> int:
    """Number of items that the user may still get."""
    remaining = own_progress(queue, user).remaining
    return remaining if queue.items.filter(state="open", occasion=FIRST_OCCASION).exists() else 0


def _claim(queue: ReviewQueue, user: User, hours: int) -> Reminder | None:
    """Claim a reminder, so that no other process sends it; ``None`` if it was sent or is being sent."""
    key = {"queue": queue, "reviewer": user, "deadline": queue.deadline, "hours": hours}
    try:
        with transaction.atomic():
            return Reminder.objects.create(**key)
    except IntegrityError:
        failed_rows = Reminder.objects.filter(**key, state=Reminder.State.FAILED, tries__lt=MAX_TRIES)
        stuck_rows = Reminder.objects.filter(
            **key, state=Reminder.State.SENDING, tries__lt=MAX_TRIES, created_at__lt=timezone.now() - SENDING_TIMEOUT
        )
        claimed_count = (failed_rows | stuck_rows).update(state=Reminder.State.SENDING, tries=F("tries") + 1)
        return Reminder.objects.get(**key) if claimed_count else None


def reminder_mail(queue: ReviewQueue, user: User) -> EmailMessage:
    remaining = remaining_items(queue, user)
    assert queue.deadline is not None  # noqa: S101 -- only queues with a deadline are reminded of
    facts = {
        "name": user.display_name,
        "queue": queue.name,
        "count": remaining,
        "deadline": date_format(timezone.localtime(queue.deadline), "DATETIME_FORMAT"),
    }
    lines = [
        gettext("Hello %(name)s,") % facts,
        ngettext(
            "You have %(count)d answer left to review in “%(queue)s”. Deadline: %(deadline)s.",
            "You have %(count)d answers left to review in “%(queue)s”. Deadline: %(deadline)s.",
            remaining,
        )
        % facts,
    ]
    if settings.CONCORD_SITE_URL:
        lines.append(f"{settings.CONCORD_SITE_URL.rstrip('/')}/review/{queue.pk}/")
    subject = gettext("Answers are waiting for your review: %(queue)s") % facts
    return EmailMessage(" ".join(subject.split()), "\n\n".join(lines) + "\n", to=[user.email])
