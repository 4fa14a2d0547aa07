"""Calls of judges handed to providers in batches."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class BatchesConfig(AppConfig):
    name = "contrib.batches"
    verbose_name = _("Batches")

    def ready(self) -> None:
        register(self.label, self.name)
