"""Pages of webhooks, for leads: list and new webhook, its secret once, its delivery log."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.utils.translation import gettext, ngettext
from django.views.decorators.cache import never_cache

from contrib.webhooks.forms import WebhookForm
from contrib.webhooks.models import Event, Webhook
from contrib.webhooks.services import create_webhook, delete_webhook, resend_failed, send_test, set_active
from evaluation.accounts import access
from evaluation.accounts.access import signed_in_form, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.messages.explanations import explain_refusal

MAX_DELIVERIES = 50


def _webhook(request: HttpRequest, pk: int) -> Webhook:
    rows = Webhook.objects.select_related("project", "created_by")
    return access.fetch(rows, request.user, Action.MANAGE_REVIEW, pk, path="project_id")


@never_cache
@signed_in_form
def webhook_list(request: HttpRequest) -> HttpResponse:
    """List the webhooks of the user's projects, and create one. Its secret is on the response only."""
    projects = list(access.projects_with(request.user, Action.MANAGE_REVIEW).order_by("name"))
    if not projects:
        raise PermissionDenied
    form, status = WebhookForm(request.POST or None, projects=projects), 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            chosen = form.cleaned_data
            try:
                webhook, secret = create_webhook(
                    chosen["project"], chosen["url"], chosen["events"], by=signed_in_user(request)
                )
            except DomainError as error:
                form.add_error("url", explain_refusal(error))
            else:
                return render(request, "webhooks/secret.html", {"webhook": webhook, "secret": secret})
    webhooks = Webhook.objects.filter(project__in=projects).select_related("project").order_by("-pk")
    return render(request, "webhooks/list.html", {"form": form, "webhooks": webhooks}, status=status)


@signed_in_get
def webhook_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a webhook with its newest messages."""
    webhook = _webhook(request, pk)
    context = {
        "webhook": webhook,
        "events": [Event(event).label for event in webhook.events],
        "deliveries": webhook.deliveries.order_by("-pk")[:MAX_DELIVERIES],
    }
    return render(request, "webhooks/webhook.html", context)


@signed_in_post
def webhook_test(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue a test message."""
    webhook = _webhook(request, pk)
    send_test(webhook)
    messages.success(request, gettext("Test message queued. Reload the page to see the outcome."))
    return redirect("webhook", webhook.pk)


@signed_in_post
def webhook_switch(request: HttpRequest, pk: int) -> HttpResponse:
    """Switch the webhook on or off."""
    webhook = _webhook(request, pk)
    set_active(webhook, is_active=not webhook.is_active, by=signed_in_user(request))
    return redirect("webhook", webhook.pk)


@signed_in_post
def webhook_resend(request: HttpRequest, pk: int) -> HttpResponse:
    """Send failed messages again."""
    webhook = _webhook(request, pk)
    count = resend_failed(webhook)
    text = ngettext("%(count)d message queued again.", "%(count)d messages queued again.", count)
    messages.success(request, text % {"count": count})
    return redirect("webhook", webhook.pk)


@signed_in_post
def webhook_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete the webhook with its messages."""
    delete_webhook(_webhook(request, pk), by=signed_in_user(request))
    return redirect("webhook-list")


urlpatterns = [
    path("webhooks/", webhook_list, name="webhook-list"),
    path("webhooks/<int:pk>/", webhook_detail, name="webhook"),
    path("webhooks/<int:pk>/test/", webhook_test, name="webhook-test"),
    path("webhooks/<int:pk>/switch/", webhook_switch, name="webhook-switch"),
    path("webhooks/<int:pk>/resend/", webhook_resend, name="webhook-resend"),
    path("webhooks/<int:pk>/delete/", webhook_delete, name="webhook-delete"),
]
