"""A lead sets up a webhook, sees its secret once, and reads its delivery log."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from contrib.webhooks.models import Delivery, Event, Webhook
from evaluation.core.roles import Role
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def test_lead_sets_up_a_webhook_and_sends_a_test(client: Client, settings: Any) -> None:
    settings.CONCORD_WEBHOOK_ORIGINS = ["https://chat.example"]
    project = make_project()
    client.force_login(make_user(Role.LEAD, project))
    body = {"project": project.pk, "url": "https://other.example/hook", "events": [str(Event.RUN_FINISHED)]}
    refused = client.post(reverse("webhook-list"), body)
    assert refused.status_code == 400
    assert "CONCORD_WEBHOOK_ORIGINS" in refused.content.decode()
    created = client.post(reverse("webhook-list"), body | {"url": "https://chat.example/hook?key=sesame"})
    assert "whsec_" in created.content.decode()
    webhook = Webhook.objects.get()
    address = reverse("webhook", args=[webhook.pk])
    page = client.get(address).content.decode()
    assert "whsec_" not in page
    assert "sesame" not in page
    assert "No messages yet" in page
    assert client.post(reverse("webhook-test", args=[webhook.pk])).status_code == 302
    Delivery.objects.update(attempts=1, problem="timeout")
    page = client.get(address).content.decode()
    assert "Test message" in page
    assert "The call took longer than allowed." in page
    assert address in client.get(reverse("webhook-list")).content.decode()
    assert reverse("webhook-list") in client.get(reverse("account")).content.decode()


def test_account_page_of_others_has_no_link(client: Client) -> None:
    client.force_login(make_user(Role.VIEWER, make_project()))
    assert reverse("webhook-list") not in client.get(reverse("account")).content.decode()
