"""Mails to people, in their language."""

import smtplib
from collections.abc import Callable
from email.errors import MessageError

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils.translation import override

from evaluation.models import User

NO_ADDRESS = "no_address"


def send_mail(person: User, build: Callable[[], EmailMessage]) -> str:
    """Build and send a mail in the person's language; returns the problem, empty if there was none."""
    with override(person.language or settings.LANGUAGE_CODE):
        mail = build()
    if not any(mail.to):
        return NO_ADDRESS
    try:
        mail.send()
    except (OSError, smtplib.SMTPException, ValueError, MessageError) as error:
        # The last two: an address or name that cannot stand in a mail, such as one with a line break.
        return f"{type(error).__name__}: {error}"[:300]
    return ""
