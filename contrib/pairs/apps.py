"""Side-by-side comparison of two answers to one question by people and judges."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class PairsConfig(AppConfig):
    name = "contrib.pairs"
    verbose_name = _("Pairs")

    def ready(self) -> None:
        register(self.label, self.name)
