"""Set up webhooks, and queue their messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext, override

from contrib.webhooks.delivery import base_url, deliver_messages
from contrib.webhooks.models import Delivery, Event, Webhook
from contrib.webhooks.signing import new_secret
from evaluation.accounts import audit
from evaluation.core.errors import DomainError
from evaluation.judges.secrets import seal
from evaluation.models import Project, User
from evaluation.network.origins import AllowList


@transaction.atomic
def create_webhook(project: Project, url: str, events: Sequence[str], *, by: User) -> tuple[Webhook, str]:
    """Create a webhook and return it with its secret, which is stored encrypted only.

    :raises DomainError: for an address that the operator does not allow."""
    try:
        origin = AllowList(settings.CONCORD_WEBHOOK_ORIGINS).check(base_url(url))
    except DomainError as error:
        code = "webhook_origin_not_allowed" if error.code == "origin_not_allowed" else error.code
        raise DomainError(code, **error.params) from error
    secret = new_secret()
    sealed = seal(secret, origin=origin, secret=settings.SECRET_KEY)
    webhook = Webhook.objects.create(
        project=project, created_by=by, url=url, sealed_secret=sealed, events=sorted(events)
    )
    audit.record(by, "webhook.created", webhook, project=project.pk, origin=str(origin), events=webhook.events)
    return webhook, secret


@transaction.atomic
def set_active(webhook: Webhook, *, is_active: bool, by: User) -> None:
    """Switch a webhook on or off. One that is off gets no new events, and its waiting messages stay."""
    Webhook.objects.filter(pk=webhook.pk).update(is_active=is_active)
    audit.record(by, "webhook.switched", webhook, is_active=is_active)
    if is_active:
        deliver_messages.enqueue(webhook.pk)


@transaction.atomic
def delete_webhook(webhook: Webhook, *, by: User) -> None:
    """Delete a webhook with its messages."""
    audit.record(by, "webhook.deleted", webhook)
    webhook.delete()


def send_test(webhook: Webhook) -> None:
    """Queue a test message."""
    with in_language(webhook):
        text = gettext("Test message from Concord, project %(project)s.") % {"project": webhook.project}
    queue_message(webhook, Event.TEST, uuid.uuid4().hex, text, "", {})


@transaction.atomic
def resend_failed(webhook: Webhook) -> int:
    """Send failed messages again, with their former ids."""
    failed = webhook.deliveries.filter(state=Delivery.State.FAILED)
    count = failed.update(state=Delivery.State.WAITING, attempts=0, next_at=Now())
    deliver_messages.enqueue(webhook.pk)
    return count


def in_language(webhook: Webhook) -> override:
    """Language of a webhook's messages: that of the person who created it."""
    return override(webhook.created_by.language or settings.LANGUAGE_CODE)


@transaction.atomic
def queue_message(
    webhook: Webhook, event: Event, subject: str, text: str, path: str, data: Mapping[str, Any]
) -> Delivery | None:
    """Queue the message of an event, once per ``subject``; ``None`` if it was queued before.

    ``text`` is shown by Slack and compatible services, with a link to ``path``."""
    url = f"{settings.CONCORD_SITE_URL.rstrip('/')}{path}" if settings.CONCORD_SITE_URL and path else ""
    message = {
        "type": str(event),
        "timestamp": timezone.now().isoformat(),
        "text": f"{text} {url}".strip(),
        "data": {"project": webhook.project.name, "url": url, **data},
    }
    body = json.dumps(message, ensure_ascii=False)
    delivery, created = Delivery.objects.get_or_create(
        webhook=webhook, event=event, subject=subject, defaults={"body": body, "next_at": timezone.now()}
    )
    if not created:
        return None
    deliver_messages.enqueue(webhook.pk)
    return delivery
