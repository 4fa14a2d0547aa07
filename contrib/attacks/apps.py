"""App of the attack sets."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class AttacksConfig(AppConfig):
    name = "contrib.attacks"
    verbose_name = _("Attacks")

    def ready(self) -> None:
        register(self.label, self.name)
