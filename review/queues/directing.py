"""What is done with a queue that is under way: a lead gives items to other people, takes them back, gives more time;
reviewers who have something left are reminded by e-mail before the deadline.

Ratings stay whatever happens here; every step of a lead is in the audit log. Each person is reminded once for every
number of hours that is set, whoever runs this and however often: the row that says so is written before the mail is
sent. A mail that could not be sent is tried again, three times in all."""

from __future__ import annotations

import smtplib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext, override

from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.models import User
from review.models import Assignment, ItemEvent, QueueMember, Reminder, Reservation, ReviewItem, ReviewQueue
from review.models.queue_spec import SETTINGS
from review.models.queues import FIRST_OCCASION
from review.queues.making import add_members, check_people
from review.queues.progress import own_progress
from review.queues.sharing import check_members
from review.ratings.leases import lease_end
from review.ratings.settling import RATED, locked, settle

State = Assignment.State


@dataclass(frozen=True, slots=True)
class Moved:
    """``moved`` items changed hands; ``kept`` did not, because the other person had them before."""

    moved: int
    kept: int


def reassign(
    queue: ReviewQueue, giver: User, taker: User, *, by: User | None, items: Collection[int] | None = None
) -> Moved:
    """Give what one person has in hand or kept for them, and has not rated, to another; all of it, or some items.

    What was in a pool is kept for the taker then (and, where it needs several people, for all but the giver). Drafts
    stay with who wrote them.

    :raises Refused: ``not_a_reviewer`` for who is not a member, or ``same_person``.
    """
    _check_members(queue, [giver, taker])
    if giver.pk == taker.pk:
        raise Refused("same_person")
    with transaction.atomic():
        rows = _unrated(queue, giver)
        found = list((rows if items is None else rows.filter(pk__in=items)).select_for_update(no_key=True))
        had = set(Assignment.objects.filter(item__in=found, reviewer=taker).values_list("item", flat=True))
        moving = [item for item in found if item.pk not in had]
        _release(Assignment.objects.filter(item__in=moving, reviewer=giver))
        _keep_for(queue, moving, giver, taker)
        audit.record(by, "queue_reassigned", queue, items=len(moving), giver=giver.pk, taker=taker.pk)
    return Moved(len(moving), len(found) - len(moving))


def name_people(queue: ReviewQueue, items: Collection[int], people: Sequence[User], *, by: User | None) -> int:
    """Keep items for exactly these people and whoever has rated them; so many reviewers each of them takes then. How
    many items that were.

    :raises Refused: ``not_a_reviewer``, ``no_reviewers``, or ``setting_range`` for more than ten people.
    """
    if not people:
        raise Refused("no_reviewers")
    _check_members(queue, people)
    wanted = {one.pk for one in people}
    with transaction.atomic():
        rows = queue.items.filter(pk__in=items, occasion=FIRST_OCCASION).exclude(state=ReviewItem.State.WITHDRAWN)
        found = list(rows.select_for_update(no_key=True).order_by("pk"))
        for item in found:
            _name(item, wanted)
        audit.record(by, "queue_people_named", queue, items=len(found), people=sorted(wanted))
    return len(found)


def release_all(queue: ReviewQueue, reviewer: User, *, by: User | None) -> int:
    """Give back everything a person has in hand; how many items that were."""
    with transaction.atomic():
        held = Assignment.objects.filter(queue=queue, reviewer=reviewer)
        # Locked: what is rated or given back at the same moment is not given back by this.
        count = _release(held.select_for_update(no_key=True).order_by("pk"))
        audit.record(by, "queue_released", queue, reviewer=reviewer.pk, items=count)
    return count


def extend_all(queue: ReviewQueue, reviewer: User, *, by: User | None) -> int:
    """Prolong everything a person has in hand from now on; how many items that were."""
    with transaction.atomic():
        held = Assignment.objects.filter(queue=queue, reviewer=reviewer, state=State.LEASED)
        count = held.update(lease_until=lease_end(queue))
        audit.record(by, "queue_extended", queue, reviewer=reviewer.pk, items=count)
    return count


def set_deadline(queue: ReviewQueue, deadline: datetime | None, *, by: User | None) -> None:
    """Move the deadline, or take it away.

    :raises Refused: ``deadline_passed`` for one that is not to come.
    """
    if deadline is not None and deadline <= timezone.now():
        raise Refused("deadline_passed")
    with transaction.atomic():
        ReviewQueue.objects.filter(pk=queue.pk).update(deadline=deadline)
        queue.deadline = deadline
        audit.record(by, "queue_deadline", queue, deadline=deadline.isoformat() if deadline else None)


def invite(queue: ReviewQueue, people: Sequence[User], *, by: User | None) -> None:
    """Let more people rate the queue's items.

    :raises Refused: ``no_reviewers``, or ``not_in_project``.
    """
    check_people(people, queue.project_id)
    with transaction.atomic():
        add_members(queue, people)
        audit.record(by, "queue_people_added", queue, people=sorted(one.pk for one in people))


def _unrated(queue: ReviewQueue, user: User) -> QuerySet[ReviewItem]:
    """Open items the person holds or has kept for them, and neither rated nor passed on; no hidden repeats."""
    mine = Assignment.objects.filter(item=OuterRef("pk"), reviewer=user)
    kept = Reservation.objects.filter(item=OuterRef("pk"), reviewer=user)
    open_ones = queue.items.filter(state=ReviewItem.State.OPEN, occasion=FIRST_OCCASION)
    passed = mine.exclude(state__in=[State.LEASED, State.EXPIRED])
    return open_ones.filter(
        Exists(mine.filter(state=State.LEASED)) | (Q(reserved=True) & Exists(kept)), ~Exists(passed)
    ).order_by("pk")


def _release(rows: QuerySet[Assignment]) -> int:
    """Take back what is in hand of these; how many that were."""
    ids = list(rows.filter(state=State.LEASED).values_list("pk", flat=True))
    Assignment.objects.filter(pk__in=ids).update(state=State.EXPIRED)
    ItemEvent.objects.bulk_create([ItemEvent(assignment_id=pk, verb="release") for pk in ids])
    return len(ids)


def _keep_for(queue: ReviewQueue, items: Sequence[ReviewItem], giver: User, taker: User) -> None:
    pooled = [item for item in items if not item.reserved]
    members = list(queue.members.exclude(reviewer=giver).values_list("reviewer_id", flat=True)) if pooled else []
    rows = [Reservation(item=item, reviewer=taker) for item in items]
    rows += [
        Reservation(item=item, reviewer_id=member)
        for item in pooled
        if item.reviews_needed > 1
        for member in members
        if member != taker.pk
    ]
    ReviewItem.objects.filter(pk__in=[item.pk for item in pooled]).update(reserved=True)
    Reservation.objects.filter(item__in=items, reviewer=giver).delete()
    Reservation.objects.bulk_create(rows, ignore_conflicts=True)


def _name(item: ReviewItem, wanted: set[int]) -> None:
    rows = Assignment.objects.filter(item=item)
    rated = set(rows.filter(state__in=RATED).values_list("reviewer_id", flat=True))
    people = wanted | rated
    SETTINGS["reviews_needed"].check(len(people))
    _release(rows.exclude(reviewer__in=people))
    Reservation.objects.filter(item=item).exclude(reviewer__in=people).delete()
    Reservation.objects.bulk_create(
        [Reservation(item=item, reviewer_id=pk) for pk in sorted(people)], ignore_conflicts=True
    )
    ReviewItem.objects.filter(pk=item.pk).update(reserved=True, reviews_needed=len(people))
    settle(locked(item.pk))


def _check_members(queue: ReviewQueue, people: Sequence[User]) -> None:
    check_members(set(QueueMember.objects.filter(queue=queue).values_list("reviewer_id", flat=True)), people)


TRIES = 3
NO_ADDRESS = "no_address"
STUCK = timedelta(minutes=10)  # a sender that died while sending


@dataclass(frozen=True, slots=True)
class Reminded:
    """What a round of reminders did."""

    sent: int = 0
    failed: int = 0


def remind_all(now: datetime | None = None) -> Reminded:
    """Send every reminder that is due; nothing without a mail server (``EMAIL_URL``)."""
    if not settings.CONCORD_MAIL:
        return Reminded()
    sent = failed = 0
    for queue, user, hours in _due(now or timezone.now()):
        claimed = _claim(queue, user, hours)
        if claimed is None:
            continue
        problem = _send(queue, user, claimed)
        state = Reminder.State.FAILED if problem else Reminder.State.SENT
        Reminder.objects.filter(pk=claimed.pk).update(state=state, problem=problem)
        sent, failed = sent + (not problem), failed + bool(problem)
    return Reminded(sent, failed)


def _due(now: datetime) -> Iterator[tuple[ReviewQueue, User, int]]:
    """Who is to be told of which queue, and the hours before the deadline this counts as: the fewest that fit, so that
    nobody is told twice at once."""
    hours = sorted(settings.CONCORD_REMIND_HOURS)
    if not hours:
        return
    soon = ReviewQueue.objects.filter(
        state=ReviewQueue.State.OPEN, deadline__gt=now, deadline__lte=now + timedelta(hours=hours[-1])
    )
    for queue in soon:
        fitting = next(number for number in hours if queue.deadline and queue.deadline - now <= timedelta(hours=number))
        for member in queue.members.filter(reviewer__is_active=True).select_related("reviewer"):
            if left_to_rate(queue, member.reviewer):
                yield queue, member.reviewer, fitting


def left_to_rate(queue: ReviewQueue, user: User) -> int:
    """How many items may still come to the person."""
    left = own_progress(queue, user).left
    return left if queue.items.filter(state="open", occasion=FIRST_OCCASION).exists() else 0


def _claim(queue: ReviewQueue, user: User, hours: int) -> Reminder | None:
    """The row of a reminder that nobody else sends now; ``None`` where it was sent or is being sent."""
    key = {"queue": queue, "reviewer": user, "deadline": queue.deadline, "hours": hours}
    try:
        with transaction.atomic():
            return Reminder.objects.create(**key)
    except IntegrityError:
        again = Reminder.objects.filter(**key, state=Reminder.State.FAILED, tries__lt=TRIES)
        stuck = Reminder.objects.filter(
            **key, state=Reminder.State.SENDING, tries__lt=TRIES, created_at__lt=timezone.now() - STUCK
        )
        taken = (again | stuck).update(state=Reminder.State.SENDING, tries=F("tries") + 1)
        return Reminder.objects.get(**key) if taken else None


def _send(queue: ReviewQueue, user: User, reminder: Reminder) -> str:
    """Why the mail could not be sent; empty when it was."""
    if not user.email:
        return NO_ADDRESS
    with override(user.language or settings.LANGUAGE_CODE):
        mail = reminder_mail(queue, user)
    try:
        mail.send()
    except (OSError, smtplib.SMTPException) as error:
        return f"{type(error).__name__}: {error}"[:300]
    return ""


def reminder_mail(queue: ReviewQueue, user: User) -> EmailMessage:
    """The mail in the active language."""
    left = left_to_rate(queue, user)
    assert queue.deadline is not None  # noqa: S101 -- only queues with a deadline are reminded of
    facts = {
        "name": user.known_as,
        "queue": queue.name,
        "count": left,
        "deadline": date_format(timezone.localtime(queue.deadline), "DATETIME_FORMAT"),
    }
    lines = [
        gettext("Hello %(name)s,") % facts,
        ngettext(
            "%(count)d answer is left for you to review in “%(queue)s”, until %(deadline)s.",
            "%(count)d answers are left for you to review in “%(queue)s”, until %(deadline)s.",
            left,
        )
        % facts,
    ]
    if settings.CONCORD_SITE_URL:
        lines.append(f"{settings.CONCORD_SITE_URL.rstrip('/')}/review/{queue.pk}/")
    subject = gettext("Answers are waiting for your review: %(queue)s") % facts
    return EmailMessage(" ".join(subject.split()), "\n\n".join(lines) + "\n", to=[user.email])
