"""Messages arrive signed and at least once, whatever the receiver does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import standardwebhooks
from django.utils import timezone

from contrib.webhooks import delivery
from contrib.webhooks.delivery import RETRY_SECONDS, attempt_delivery, deliver_messages
from contrib.webhooks.models import Delivery, Event, Webhook
from contrib.webhooks.services import create_webhook, delete_webhook, resend_failed, send_test, set_active
from contrib.webhooks.tests.receiver import RESET, STALL, Receiver, receiving
from evaluation.accounts.audit import AuditEvent
from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.models import Job, User
from evaluation.network.transport import Deadlines
from tests.factories import make_project, make_user
from tests.jobs import work_on_job

pytestmark = pytest.mark.django_db
State = Delivery.State


@pytest.fixture
def receiver(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as server:
        settings.CONCORD_WEBHOOK_ORIGINS = [server.origin]
        monkeypatch.setattr(delivery, "DEADLINES", Deadlines(connect=1.0, read=1.0, total=1.0))
        yield server


@pytest.fixture
def lead() -> User:
    return make_user(Role.LEAD, make_project())


@pytest.fixture
def hook(receiver: Receiver, lead: User) -> tuple[Webhook, str]:
    project = lead.grants.get().project
    return create_webhook(project, f"{receiver.origin}/hooks/7?key=k", [Event.RUN_FINISHED], by=lead)


def make_due(webhook: Webhook) -> None:
    """Let the pauses before the next attempt pass."""
    webhook.deliveries.update(next_at=timezone.now() - timedelta(seconds=1))
    Job.objects.update(next_at=timezone.now() - timedelta(seconds=1))


def test_message_arrives_signed_with_text_and_link(
    receiver: Receiver, hook: tuple[Webhook, str], settings: Any
) -> None:
    webhook, secret = hook
    settings.CONCORD_SITE_URL = "https://concord.example"
    send_test(webhook)
    work_on_job(deliver_messages, webhook.pk)
    [(headers, body)] = receiver.requests
    message = standardwebhooks.Webhook(secret).verify(body, headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(secret).verify(body.replace("test", "text"), headers)
    assert message["type"] == "test"
    assert message["text"] == f"Test message from Concord, project {webhook.project}."
    sent = webhook.deliveries.get()
    assert (sent.state, sent.status, sent.attempts, sent.problem) == (State.DELIVERED, 204, 1, "")
    work_on_job(deliver_messages, webhook.pk)
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    ("fault", "status", "problem"),
    [(500, 500, ""), (404, 404, ""), (302, 302, "redirect"), (RESET, None, "connection"), (STALL, None, "timeout")],
)
def test_faults_are_retried_with_the_same_id(
    receiver: Receiver, hook: tuple[Webhook, str], fault: int | str, status: int | None, problem: str
) -> None:
    webhook, _secret = hook
    receiver.script.append(fault)
    send_test(webhook)
    work_on_job(deliver_messages, webhook.pk)
    failed = webhook.deliveries.get()
    assert (failed.state, failed.status, failed.problem) == (State.WAITING, status, problem)
    assert timedelta(0) < failed.next_at - timezone.now() <= timedelta(seconds=RETRY_SECONDS[0])
    assert Job.objects.get(kind="webhook").state == Job.State.WAITING
    make_due(webhook)
    work_on_job(deliver_messages, webhook.pk)
    assert webhook.deliveries.get().state == State.DELIVERED
    assert len({headers["webhook-id"] for headers, _body in receiver.requests}) == 1
    assert [body for _headers, body in receiver.requests] == [failed.body] * 2


def test_message_fails_after_the_last_attempt_until_it_is_sent_again(
    receiver: Receiver, hook: tuple[Webhook, str]
) -> None:
    webhook, _secret = hook
    receiver.script.extend([500] * len(RETRY_SECONDS))
    send_test(webhook)
    for _attempt in RETRY_SECONDS:
        make_due(webhook)
        work_on_job(deliver_messages, webhook.pk)
    assert webhook.deliveries.get().state == State.FAILED
    assert len(receiver.requests) == len(RETRY_SECONDS)
    assert resend_failed(webhook) == 1
    work_on_job(deliver_messages, webhook.pk)
    assert webhook.deliveries.get().state == State.DELIVERED


def test_message_of_a_worker_that_died_after_sending_is_sent_again(
    receiver: Receiver, hook: tuple[Webhook, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, _secret = hook
    send_test(webhook)

    class Killed(BaseException):
        pass

    def die_after_sending(run: Any) -> None:
        asyncio_run(run)
        raise Killed

    asyncio_run = delivery.asyncio.run
    with monkeypatch.context() as patch:
        patch.setattr(delivery.asyncio, "run", die_after_sending)
        with pytest.raises(Killed):
            attempt_delivery(webhook, webhook.deliveries.get())
    assert len(receiver.requests) == 1
    interrupted = webhook.deliveries.get()
    assert (interrupted.state, interrupted.attempts) == (State.WAITING, 1)
    make_due(webhook)
    work_on_job(deliver_messages, webhook.pk)
    first, second = (headers["webhook-id"] for headers, _body in receiver.requests)
    assert first == second
    assert webhook.deliveries.get().state == State.DELIVERED


def test_address_is_checked_when_it_is_set_up_and_when_it_is_called(
    receiver: Receiver, hook: tuple[Webhook, str], lead: User, settings: Any
) -> None:
    webhook, _secret = hook
    for url, code in (
        ("https://elsewhere.example/hook", "webhook_origin_not_allowed"),
        ("http://169.254.169.254/latest", "origin_never_allowed"),
        ("ftp://127.0.0.1/", "origin_invalid"),
    ):
        with pytest.raises(DomainError) as refusal:
            create_webhook(webhook.project, url, [Event.RUN_FINISHED], by=lead)
        assert refusal.value.code == code
    settings.CONCORD_WEBHOOK_ORIGINS = []
    send_test(webhook)
    work_on_job(deliver_messages, webhook.pk)
    assert receiver.requests == []
    assert webhook.deliveries.get().problem == "origin_not_allowed"


def test_webhook_that_is_off_sends_nothing_and_secret_is_stored_encrypted(
    receiver: Receiver, hook: tuple[Webhook, str], lead: User
) -> None:
    webhook, secret = hook
    assert secret.startswith("whsec_")
    assert secret not in webhook.sealed_secret
    set_active(webhook, is_active=False, by=lead)
    send_test(webhook)
    work_on_job(deliver_messages, webhook.pk)
    assert receiver.requests == []
    set_active(webhook, is_active=True, by=lead)
    work_on_job(deliver_messages, webhook.pk)
    assert len(receiver.requests) == 1
    delete_webhook(webhook, by=lead)
    assert not Delivery.objects.exists()
    verbs = list(AuditEvent.objects.filter(object_type="webhooks.webhook").values_list("verb", flat=True))
    assert verbs == ["webhook.created", "webhook.switched", "webhook.switched", "webhook.deleted"]
