"""Reminders by e-mail before a queue's deadline, to reviewers who have something left.

Each person is told once for every number of hours that is set, whoever runs this and however often: the row that says
so is written before the mail is sent. A mail that could not be sent is tried again, three times in all.
"""

from __future__ import annotations

import smtplib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext, override

from evaluation.models import User
from review.models import Reminder, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.queues.progress import own_progresses

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
        if queue.deadline is None:
            continue
        left = queue.deadline - now
        fitting = next(number for number in hours if left <= timedelta(hours=number))
        for member in queue.members.filter(reviewer__is_active=True).select_related("reviewer"):
            if left_to_rate(queue, member.reviewer):
                yield queue, member.reviewer, fitting


def left_to_rate(queue: ReviewQueue, user: User) -> int:
    """How many items may still come to the person."""
    own = own_progresses([queue], user)[queue.pk]
    return max(0, own.items - own.rated - own.skipped - own.flagged) if _still_open(queue) else 0


def _still_open(queue: ReviewQueue) -> bool:
    return queue.items.filter(state="open", occasion=FIRST_OCCASION).exists()


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
