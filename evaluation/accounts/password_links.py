"""Links that an administrator makes for a person to choose a password.

Whoever makes a link can use it and act as the person. A person who had logged in before is told of it by mail and at
log-in, and for a week after its use their ratings are not blind."""

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import messages
from django.core.mail import EmailMessage
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from evaluation.accounts import audit
from evaluation.accounts.login import password_link
from evaluation.accounts.mail import send_mail
from evaluation.models import AuditEvent, User

log = logging.getLogger("concord.accounts")
LINK_MADE = "password.link_made"
#: Time after the use of another person's link in which ratings are not blind.
DISTRUST = timedelta(days=7)
#: Every login within this time after a link was made names it.
NOTICE = timedelta(days=30)


class PasswordLink(NamedTuple):
    """A link without host. ``is_mailed`` is ``None`` if the person needs no mail about it."""

    path: str
    is_mailed: bool | None


def make_link(person: User, by: User) -> PasswordLink:
    """Make a link, record it, and mail a person who has logged in before, if a mail server is set."""
    by_other = person.last_login is not None and person != by
    problem = "no_server" if by_other else ""
    if by_other and settings.CONCORD_MAIL:
        problem = send_mail(person, partial(_link_mail, person, by))
        if problem:
            log.error("cannot mail user %s about a password link: %s", person.pk, problem)
    audit.record(by, LINK_MADE, person, by_other=by_other, mailed=by_other and not problem)
    return PasswordLink(password_link(person), not problem if by_other else None)


def _link_mail(person: User, by: User) -> EmailMessage:
    facts = {"name": person.display_name, "maker": by.display_name, "time": _format_time(timezone.now())}
    lines = [
        gettext("Hello %(name)s,") % facts,
        gettext("On %(time)s, %(maker)s created a link to set a new password for your account.") % facts,
        gettext("After the link is used, your ratings are not blind for seven days."),
        gettext("If you didn't request the link, tell another administrator."),
    ]
    subject = gettext("A link to set a new password was created")
    return EmailMessage(subject, "\n\n".join(lines) + "\n", to=[person.email])


def report_new_address(person: User, old_address: str, by: User) -> None:
    """Mail the old address that another person changed it, because links are mailed to the new one from then on."""
    if not (old_address and settings.CONCORD_MAIL):
        return
    if problem := send_mail(person, partial(_new_address_mail, person, old_address, by)):
        log.error("cannot mail the old address of user %s about the new one: %s", person.pk, problem)


def _new_address_mail(person: User, old_address: str, by: User) -> EmailMessage:
    facts = {"name": person.display_name, "maker": by.display_name}
    lines = [
        gettext("Hello %(name)s,") % facts,
        gettext("%(maker)s changed the e-mail address of your account.") % facts,
        gettext("If you didn't request this, tell another administrator."),
    ]
    return EmailMessage(gettext("Your e-mail address was changed"), "\n\n".join(lines) + "\n", to=[old_address])


def has_address_of_others(person: User) -> bool:
    """Return whether another person ever changed the e-mail address of the account."""
    events = AuditEvent.objects.filter(
        verb="admin.changed", object_type=User._meta.label_lower, object_id=str(person.pk)
    ).exclude(actor=person)
    return any("email" in event.detail.get("fields", ()) for event in events)


def distrust(person: User) -> datetime:
    """Store that the person's ratings are not blind for a week; returns until when."""
    person.not_blind_until = timezone.now() + DISTRUST
    person.save(update_fields=["not_blind_until"])
    return person.not_blind_until


def distrust_chosen_password(person: User) -> datetime | None:
    """Distrust a person who chose a password by another person's link and had logged in before.

    Call before the login: a link made before the last login is not valid any more. A link without an event, made by a
    command, counts as another person's."""
    if person.last_login is None:
        return None
    links = AuditEvent.objects.filter(
        verb=LINK_MADE,
        object_type=User._meta.label_lower,
        object_id=str(person.pk),
        created_at__gte=person.last_login,
    )
    return None if set(links.values_list("actor", flat=True)) == {person.pk} else distrust(person)


def links_by_others(since: datetime) -> QuerySet[AuditEvent]:
    """Events of links that another person made for somebody who had logged in before, newest first."""
    events = AuditEvent.objects.filter(object_type=User._meta.label_lower, verb=LINK_MADE, detail__by_other=True)
    return events.filter(created_at__gte=since).select_related("actor").order_by("-id")


def show_links(*, request: HttpRequest, user: User, **_signal: Any) -> None:
    """Name the links to a person who logs in: at the first login after each, and for thirty days."""
    if user.last_login is None:
        return
    since = min(user.last_login, timezone.now() - NOTICE)
    for event in links_by_others(since).filter(object_id=str(user.pk)):
        facts = {"maker": event.actor.display_name if event.actor else "–", "time": _format_time(event.created_at)}
        sentence = gettext("On %(time)s, %(maker)s created a link to set a new password for your account.")
        request_to_tell = gettext("If you didn't request the link, tell another administrator.")
        messages.warning(request, f"{sentence % facts} {request_to_tell}", fail_silently=True)
    if user.not_blind_until and user.is_distrusted:
        sentence = gettext("Your ratings are not blind until %(time)s because someone else may have logged in as you.")
        messages.warning(request, sentence % {"time": _format_time(user.not_blind_until)}, fail_silently=True)


def _format_time(time: datetime) -> str:
    return date_format(timezone.localtime(time), "DATETIME_FORMAT")
