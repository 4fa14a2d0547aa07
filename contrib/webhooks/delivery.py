"""The job that sends the messages of a webhook: signed, retried after growing pauses, at least once.

An attempt is counted and its retry scheduled before the request. A process that dies before it stores the response
leaves a message that is sent again with the same id."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from contrib.webhooks.models import Delivery, Webhook
from contrib.webhooks.signing import signed_headers
from evaluation.core.errors import DomainError
from evaluation.judges.secrets import unseal
from evaluation.network.origins import parse_origin
from evaluation.network.outcomes import Outcome
from evaluation.network.transport import Deadlines, GuardedTransport, HttpResponse, TransportFault
from evaluation.worker.jobs import AT_ONCE, Lease, job

# Pauses after each attempt; the message has failed after the last one (31 hours).
RETRY_SECONDS = (5, 300, 1800, 7200, 18_000, 36_000, 50_000)
DEADLINES = Deadlines(connect=5.0, read=15.0, total=20.0)
MAX_RESPONSE_BYTES = 64 * 1024
State = Delivery.State


def base_url(url: str) -> str:
    """Address without the query, which may hold a key of the receiving service."""
    return url.partition("?")[0]


@job("webhook")
def deliver_messages(webhook_id: int, lease: Lease) -> timedelta | None:
    """Send the due messages of a webhook, oldest first."""
    webhook = Webhook.objects.filter(pk=webhook_id, is_active=True).first()
    if webhook is None:
        return None
    waiting = webhook.deliveries.filter(state=State.WAITING)
    for delivery in waiting.filter(next_at__lte=timezone.now()).order_by("pk"):
        if not lease.may_continue():
            return AT_ONCE
        attempt_delivery(webhook, delivery)
    next_at = waiting.order_by("next_at").values_list("next_at", flat=True).first()
    return None if next_at is None else max(AT_ONCE, next_at - timezone.now())


def attempt_delivery(webhook: Webhook, delivery: Delivery) -> None:
    """Send a message once and store the outcome."""
    delivery.attempts += 1
    pause = RETRY_SECONDS[min(delivery.attempts, len(RETRY_SECONDS)) - 1]
    delivery.next_at = timezone.now() + timedelta(seconds=pause)
    delivery.save(update_fields=["attempts", "next_at"])
    delivery.status, delivery.problem = None, ""
    try:
        delivery.status = asyncio.run(_post(webhook, delivery)).status
    except TransportFault as fault:
        delivery.problem = str(fault.outcome)
    except DomainError as error:
        delivery.problem = error.code
    if delivery.status is not None and 300 <= delivery.status < 400:
        delivery.problem = str(Outcome.REDIRECT)
    if delivery.status is not None and 200 <= delivery.status < 300:
        delivery.state = State.DELIVERED
    elif delivery.attempts >= len(RETRY_SECONDS):
        delivery.state = State.FAILED
    delivery.save(update_fields=["status", "problem", "state"])


async def _post(webhook: Webhook, delivery: Delivery) -> HttpResponse:
    """Send a message.

    :raises TransportFault: without a response.
    :raises DomainError: for an address that is no longer allowed, or a secret that cannot be read."""
    secrets = [settings.SECRET_KEY, *map(str, settings.SECRET_KEY_FALLBACKS)]
    secret = unseal(webhook.sealed_secret, origin=parse_origin(base_url(webhook.url)), secrets=secrets)
    transport = GuardedTransport(
        base_url(webhook.url),
        allowed_origins=settings.CONCORD_WEBHOOK_ORIGINS,
        deadlines=DEADLINES,
        max_bytes=MAX_RESPONSE_BYTES,
        headers=signed_headers(secret, f"msg_{delivery.message_id.hex}", int(time.time()), delivery.body),
    )
    try:
        exchange = await transport.open("POST", webhook.url, delivery.body.encode())
        try:
            return await exchange.read_whole()
        finally:
            await exchange.aclose()
    finally:
        await transport.aclose()
