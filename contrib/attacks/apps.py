"""App of the attack sets."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from evaluation.extensions import register


class AttacksConfig(AppConfig):
    """Registers the tables and extensions of the feature."""

    name = "contrib.attacks"
    verbose_name = _("Attacks")

    def ready(self) -> None:
        register(self.label, self.name)
