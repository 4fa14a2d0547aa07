"""Signed messages about a project's events."""

from typing import Any

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class WebhooksConfig(AppConfig):
    name = "contrib.webhooks"
    verbose_name = _("Webhooks")

    def ready(self) -> None:
        register(self.label, self.name)
        from review.comparisons.signals import gate_computed

        gate_computed.connect(_queue_failed_gate, dispatch_uid="webhooks")


def _queue_failed_gate(**sent: Any) -> None:
    from contrib.webhooks.events import queue_failed_gate

    queue_failed_gate(**sent)
