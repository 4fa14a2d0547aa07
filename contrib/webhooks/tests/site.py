"""Addresses and pages of webhooks, for the tests of the core that walk all of them."""

from __future__ import annotations

from django.urls import reverse
from django.utils import timezone

from contrib.webhooks.models import Event, Webhook
from evaluation.models import Project, Run, User
from tests.access_rules import LEADS

LEADS_SOMEWHERE = " login     no       no     no     no       no        ok   ok  "
RULES = {
    ("GET", "webhook-list"): LEADS_SOMEWHERE,
    ("POST", "webhook-list"): LEADS_SOMEWHERE,
    ("GET", "webhook"): LEADS,
    ("POST", "webhook-test"): LEADS,
    ("POST", "webhook-switch"): LEADS,
    ("POST", "webhook-resend"): LEADS,
    ("POST", "webhook-delete"): LEADS,
}


def webhook_of(project: Project) -> Webhook:
    """Return a webhook of the project with a waiting message, made when it is first needed."""
    by = User.objects.filter(grants__project=project, grants__role="lead").first()
    about = {"created_by": by, "url": "https://chat.example/hooks/1", "events": [str(Event.RUN_FINISHED)]}
    webhook, created = Webhook.objects.get_or_create(project=project, defaults=about)
    if created:
        webhook.deliveries.create(event=Event.TEST, subject="test", body="{}", next_at=timezone.now())
    return webhook


SUBJECTS = dict.fromkeys(
    ("webhook", "webhook-test", "webhook-switch", "webhook-resend", "webhook-delete"),
    lambda world: webhook_of(world.project).pk,
)
PAGES = {
    "webhooks": ("lead", lambda w: reverse("webhook-list"), 5),
    "webhook": ("lead", lambda w: reverse("webhook", args=[webhook_of(w.project).pk]), 7),
}


def lead_pages(_vector: Run, run: Run) -> list[str]:
    """Addresses that a lead opens."""
    return [reverse("webhook-list"), reverse("webhook", args=[webhook_of(run.project).pk])]
